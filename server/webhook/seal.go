package webhook

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

const (
	keyBytes    = 32 // of Config.Key, for AES-256
	secretBytes = 32 // the specification asks for 24 to 64
	idBytes     = 16
)

// secretPrefix begins a secret as the specification writes it.
const secretPrefix = "whsec_"

// newSeal makes the cipher of the secrets.
func newSeal(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// draw returns random bytes.
func (w *Webhooks) draw(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(w.random, b); err != nil {
		return nil, fmt.Errorf("webhook: draw random bytes: %w", err)
	}
	return b, nil
}

// newID draws the name of a subscription.
func (w *Webhooks) newID() (string, error) {
	b, err := w.draw(idBytes)
	return "wh_" + lower.EncodeToString(b), err
}

// lower is base32 with letters that paths and shells take as they are.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// newSecret draws a secret, and seals it for the subscription with the id. The sealed form is
//
//	nonce 12 | sealed secret 32 | tag 16
func (w *Webhooks) newSecret(id string) (text string, sealed []byte, err error) {
	b, err := w.draw(w.seal.NonceSize() + secretBytes)
	if err != nil {
		return "", nil, err
	}
	nonce, secret := b[:w.seal.NonceSize():w.seal.NonceSize()], b[w.seal.NonceSize():]
	return secretPrefix + base64.StdEncoding.EncodeToString(secret), w.seal.Seal(nonce, nonce, secret, []byte(Class+"/"+id)), nil
}

// errUnsealed says that a secret was sealed with another key, or for another subscription.
var errUnsealed = errors.New("webhook: the secret cannot be read: Config.Key is not the one that it was stored with; take that key, or rotate the secret")

// unsealed reads a secret.
func (w *Webhooks) unsealed(id string, sealed []byte) ([]byte, error) {
	n := w.seal.NonceSize()
	if len(sealed) < n {
		return nil, errUnsealed
	}
	secret, err := w.seal.Open(nil, sealed[:n], sealed[n:], []byte(Class+"/"+id))
	if err != nil {
		return nil, errUnsealed
	}
	return secret, nil
}
