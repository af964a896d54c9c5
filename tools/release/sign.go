// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// What a signature consists of, beside the checksums.
const (
	signatureFile = checksumsFile + ".sig"
	publicKeyFile = "sallyport.pub"
)

// sign signs the checksums, and so all files: `openssl dgst -sha256 -verify sallyport.pub -signature
// checksums.txt.sig checksums.txt` checks it. The same checksums and key give the same signature (RFC 6979).
func (s settings) sign() error {
	key, err := readKey(s.key)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(s.out, checksumsFile))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	signature, err := key.Sign(nil, sum[:], crypto.SHA256) // without a source of randomness it is deterministic
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		signatureFile: signature, publicKeyFile: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := s.write(name, data); err != nil {
			return err
		}
	}
	return nil
}

// readKey reads an ECDSA key in PEM (PKCS #8 or SEC 1).
func readKey(file string) (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the signing key: %w", err)
	}
	problem := fmt.Errorf("%s is not an ECDSA private key in PEM: create one with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out FILE`", file)
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, problem
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.Join(problem, err)
	}
	return key, nil
}
