// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// What a signature consists of, beside the checksums.
const (
	signatureFile = checksumsFile + ".sig"
	publicKeyFile = "sallyport.pub"
	// What cosign looks for beside an image: a statement with its digest, and the signature of that in base64.
	imageStatementFile = "sallyport-image.statement.json"
	imageSignatureFile = imageStatementFile + ".sig"
)

// sign signs the checksums, and so all files: `openssl dgst -sha256 -verify sallyport.pub -signature
// checksums.txt.sig checksums.txt` checks it. It signs the image, too, as `cosign verify --key sallyport.pub` expects.
// The same content and key give the same signature (RFC 6979).
func (s settings) sign() error {
	key, err := readKey(s.key)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(s.out, checksumsFile))
	if err != nil {
		return err
	}
	signature, err := signed(key, data)
	if err != nil {
		return err
	}
	statement, err := s.imageStatement()
	if err != nil {
		return err
	}
	ofImage, err := signed(key, statement)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		imageStatementFile: statement, imageSignatureFile: []byte(base64.StdEncoding.EncodeToString(ofImage)),
		signatureFile: signature, publicKeyFile: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := s.write(name, data); err != nil {
			return err
		}
	}
	return nil
}

func signed(key *ecdsa.PrivateKey, data []byte) ([]byte, error) {
	sum := sha256.Sum256(data)
	return key.Sign(nil, sum[:], crypto.SHA256) // without a source of randomness it is deterministic
}

// imageStatement says which image is meant, as cosign's specification of signatures has it (SIGNATURE_SPEC.md,
// "Simple Signing").
func (s settings) imageStatement() ([]byte, error) {
	digest, err := s.imageDigest()
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"critical": map[string]any{
		"identity": map[string]string{"docker-reference": s.repository},
		"image":    map[string]string{"docker-manifest-digest": digest.String()},
		"type":     "cosign container image signature",
	}, "optional": nil})
}

func (s settings) imageDigest() (v1.Hash, error) {
	images, err := layout.ImageIndexFromPath(filepath.Join(s.out, imageFolder))
	if err != nil {
		return v1.Hash{}, err
	}
	return images.Digest()
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
