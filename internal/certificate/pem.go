// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

const certificateBlock = "CERTIFICATE"

// parseBundle reads the certificates of a PEM bundle. Anything else is an error, above all
// a private key, because bundles are published.
func parseBundle(text []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != certificateBlock {
			return nil, errors.New("the PEM contains a block that is not a CERTIFICATE")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse certificate %d of the PEM: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
		text = rest
	}
	if len(certificates) == 0 {
		return nil, errors.New("the PEM contains no certificate")
	}
	return certificates, nil
}

// certificatesIn reads the certificates of a published PEM bundle like clients do, ignoring
// anything else.
func certificatesIn(text []byte) []*x509.Certificate {
	var certificates []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return certificates
		}
		if block.Type != certificateBlock {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			certificates = append(certificates, certificate)
		}
	}
}

// encodeBundle writes certificates as PEM, with nothing around them.
func encodeBundle(certificates []*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, certificate := range certificates {
		text.Write(encodeBlock(certificateBlock, certificate.Raw))
	}
	return text.Bytes()
}

func encodeBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
