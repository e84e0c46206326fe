//! The signatures of Restate's requests: Ed25519 by ring, which the TLS of all requests has already.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtSigner, JwtVerifier};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use ring::signature::{ED25519, UnparsedPublicKey};

/// Verifies signatures, and signs nothing.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: refuse,
    verifier_factory: verifier,
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// Makes the verifier known to the SDK. A provider that the program has set before stays.
pub(super) fn install() {
    _ = PROVIDER.install_default();
}

fn refuse(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    match algorithm {
        Algorithm::EdDSA => Ok(Box::new(Ed25519(key.as_bytes().to_vec()))),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

/// A public key.
struct Ed25519(Vec<u8>);

impl Verifier<Vec<u8>> for Ed25519 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Ed25519 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of hexadecimal digits.
    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn a_signature_of_rfc_8032_is_verified_and_a_changed_one_is_not() {
        let key = bytes("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        let mut signature = bytes(
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        );
        let verifier = verifier(&Algorithm::EdDSA, &DecodingKey::from_ed_der(&key)).unwrap();
        assert!(verifier.verify(b"", &signature).is_ok());
        assert!(verifier.verify(b"x", &signature).is_err());
        signature[5] ^= 1;
        assert!(verifier.verify(b"", &signature).is_err());
        assert!(super::verifier(&Algorithm::RS256, &DecodingKey::from_ed_der(&key)).is_err());
    }
}
