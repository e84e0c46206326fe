//! Computes the context size that a call needs.

use std::sync::Arc;

use formwork_core::{Message, Part};

/// The minimum context that is requested, in tokens: Ollama's own default. Smaller contexts would save little, and the
/// model would be reloaded for the next longer prompt.
const MIN: u64 = 4096;

/// The maximum context that is requested of a model whose context is not known, in tokens: that of the larger open models, such as
/// Llama 3.1. A longer prompt is refused by the server, because it is asked not to truncate.
const MAX: u64 = 1 << 17;

/// The assumed tokens of a completion without a token limit.
const ANSWER: u64 = 2048;

/// The tokens that a template adds around a message.
const AROUND: u64 = 16;

/// The tokens of a template by itself: a date, a default system message.
const TEMPLATE: u64 = 64;

/// The assumed tokens of an image. Models differ widely.
const IMAGE: u64 = 2048;

/// Returns the context size for these messages and a completion of `answer` tokens: a power of two, so that calls of similar
/// length request the same size, or the context of the model if it is `known` and smaller.
pub(super) fn size(messages: &[Arc<Message>], answer: Option<u64>, known: Option<u32>) -> u64 {
    let prompt_bytes: u64 =
        messages.iter().map(|message| AROUND + message.parts.iter().map(part).sum::<u64>()).sum();
    let needed = prompt_bytes.saturating_add(TEMPLATE).saturating_add(answer.unwrap_or(ANSWER));
    let most = known.map_or(MAX, u64::from);
    needed.clamp(MIN, most.max(MIN)).next_power_of_two().min(most)
}

fn part(part: &Part) -> u64 {
    match part {
        Part::Text { text } | Part::ToolResult { text, .. } => tokens(text),
        Part::ToolCall { name, arguments, .. } => tokens(name) + tokens(&arguments.to_string()),
        Part::Image { .. } => IMAGE,
        // Reasoning is not sent.
        _ => 0,
    }
}

/// Returns a practical upper bound on the tokens of a text: two bytes per token, with every digit and punctuation mark
/// counted separately.
///
/// Byte-pair vocabularies have three to five bytes per token for English and two to four for other languages, names and
/// code. Several of them (Qwen's, Gemma's, SmolLM2's) have a token for each digit, and JSON's punctuation is often a token
/// by itself.
fn tokens(text: &str) -> u64 {
    // The chunks are short enough for sums of single bytes, which the compiler computes 16 at a time.
    let is_alone = |byte: &u8| u8::from(byte.is_ascii_graphic() && !byte.is_ascii_alphabetic());
    let chunks = text.as_bytes().chunks(usize::from(u8::MAX));
    let alone: usize = chunks.map(|chunk| usize::from(chunk.iter().map(is_alone).sum::<u8>())).sum();
    ((text.len() + alone) as u64).div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_alone_counts_whole_and_the_rest_half() {
        assert_eq!(
            (tokens(""), tokens("abcd"), tokens("abc"), tokens("1234"), tokens("{\"a\"")),
            (0, 2, 2, 4, 4)
        );
        assert_eq!(tokens("東京"), 3);
    }

    #[test]
    fn prompts_of_about_the_same_length_share_a_context() {
        let size_of = |bytes: usize| size(&[Arc::new(Message::user("a".repeat(bytes)))], Some(400), None);
        assert_eq!((size_of(1), size_of(1000), size_of(7000)), (4096, 4096, 4096));
        assert_eq!((size_of(8000), size_of(15_000)), (8192, 8192));
        assert!(size_of(100_000) >= 50_000);
    }

    #[test]
    fn nothing_overflows_and_no_more_is_requested_than_a_model_has() {
        let long = [Arc::new(Message::user("a".repeat(1_900_000)))];
        for (known, expected) in [
            (None, 131_072),
            (Some(2_048), 2_048),
            (Some(40_000), 40_000),
            (Some(1_048_576), 1_048_576),
            (Some(u32::MAX), 1_048_576),
        ] {
            assert_eq!(size(&long, None, known), expected, "{known:?}");
            assert_eq!(size(&[], None, known), expected.min(4096), "{known:?}");
        }
        assert_eq!(size(&[], Some(u64::MAX), None), MAX);
        assert_eq!(size(&[], Some(u64::MAX), Some(u32::MAX)), u64::from(u32::MAX));
    }
}
