//! The source of all randomness.

use sha2::{Digest as _, Sha256};

use crate::PromptId;

/// Returns the seed of a score, a hash of the wallet's text and the prompt's version. The run adds the number of the
/// attempt.
///
/// The same wallet, prompt and model therefore give the same answer if the model respects the seed, and each attempt has
/// another seed. It has 30 bits, because several providers take a signed integer of 32 bits: a larger seed would be sent as
/// another number than is recorded.
pub(crate) fn seed(words: &str, prompt: &PromptId) -> u64 {
    let mut hash = Sha256::new();
    hash.update(words);
    hash.update([0]);
    hash.update(&prompt.hash);
    hash.finalize().iter().take(4).fold(0, |seed, byte| seed << 8 | u64::from(*byte)) >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_of_the_wallet_and_of_the_version() {
        let version = |hash: &str| PromptId { name: "v".into(), hash: hash.into() };
        let first = seed("a", &version("1"));
        assert_eq!(first, seed("a", &version("1")));
        assert_ne!(first, seed("b", &version("1")));
        assert_ne!(first, seed("a", &version("2")));
        let renamed = PromptId { name: "other".into(), ..version("1") };
        assert_eq!(first, seed("a", &renamed));
        let most = (0..1000).map(|nth| seed(&nth.to_string(), &version("1"))).max().unwrap();
        assert!(most > 1 << 29 && most < 1 << 30, "{most}");
    }
}
