use std::collections::{HashMap, HashSet};

use candle_core::quantized::gguf_file::Value;
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{PreTokenizerWrapper, Tokenizer};
use toktrie::{TokRxInfo, TokTrie, TokenizerEnv};

use crate::LocalError;
use crate::model::Gguf;

/// A model's vocabulary: converts text to ids and ids to bytes, and knows the control tokens.
///
/// Plain text never becomes a control token; control tokens are written by name only.
pub(crate) struct Vocabulary {
    tokenizer: Tokenizer,
    trie: TokTrie,
    /// The control tokens with their texts, the longest first.
    special: Vec<(String, u32)>,
    begin: Option<u32>,
    ends: Vec<u32>,
    lengths: Lengths,
}

impl Vocabulary {
    /// Reads the vocabulary from a file's metadata.
    pub(crate) fn read(gguf: &Gguf) -> Result<Self, LocalError> {
        let model = gguf.text("tokenizer.ggml.model").unwrap_or("none");
        if model != "gpt2" {
            let reason =
                format!("the tokenizer model `{model}` is not supported, only byte-pair encoding (gpt2) is");
            return Err(gguf.error(reason));
        }
        let texts = strings(gguf, "tokenizer.ggml.tokens")?;
        let kinds = kinds(gguf, texts.len())?;
        let special = special(&texts, &kinds);
        let id_of = |key: &str| gguf.number(key).filter(|id| *id < texts.len()).map(|id| id as u32);
        let ends = ends(gguf, &special, texts.len())?;
        let add_begin = gguf.flag("tokenizer.ggml.add_bos_token").unwrap_or(false);
        let begin = id_of("tokenizer.ggml.bos_token_id").filter(|_| add_begin);
        let words = words(&texts, &kinds);
        let first = *ends.first().ok_or_else(|| gguf.error("the model has no end-of-text token"))?;
        let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, first), &words).with_eos_tokens(&ends);
        let lengths = Lengths::of(&texts);
        Ok(Self { tokenizer: tokenizer(gguf, texts)?, trie, special, begin, ends, lengths })
    }

    /// Returns the minimum number of tokens of consecutive texts.
    ///
    /// It does not tokenize them, which takes a hundred times the memory of the text.
    pub(crate) fn min_tokens<'t>(&self, texts: impl Iterator<Item = &'t str>) -> usize {
        self.lengths.min_tokens(texts)
    }

    /// Returns the tokens of a text, in which nothing counts as a control token.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let encoding = self.tokenizer.encode_fast(text, false).map_err(|error| error.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Splits a text at the control tokens in it.
    pub(crate) fn split_special<'t>(&self, mut text: &'t str) -> Vec<Written<'t>> {
        let mut parts = Vec::new();
        while !text.is_empty() {
            let found = self
                .special
                .iter()
                .filter_map(|(special, id)| Some((text.find(special.as_str())?, special.len(), *id)))
                // The list starts with the longest, and `min_by_key` returns the first of equal ones.
                .min_by_key(|(at, ..)| *at);
            let Some((at, length, id)) = found else {
                parts.push(Written::Plain(text));
                break;
            };
            if at > 0 {
                parts.push(Written::Plain(&text[..at]));
            }
            parts.push(Written::Special(id));
            text = &text[at + length..];
        }
        parts
    }

    /// Returns the text of a control token; `None` for other tokens.
    pub(crate) fn special_text(&self, id: u32) -> Option<&str> {
        self.special.iter().find(|(_, special)| *special == id).map(|(text, _)| text.as_str())
    }

    /// Returns whether a control token has this text.
    pub(crate) fn has_special(&self, text: &str) -> bool {
        self.special.iter().any(|(special, _)| special == text)
    }

    /// Returns the token at the start of every prompt, for models that have one.
    pub(crate) const fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// Returns the tokens that end an answer.
    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends
    }
}

/// A piece of text, or a control token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written<'t> {
    Plain(&'t str),
    Special(u32),
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.encode(text).unwrap_or_default())
    }
}

/// The relevant values of llama.cpp's `llama_token_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Text in the byte-to-character alphabet of GPT-2.
    Normal,
    /// A control token, or another added token: never part of plain text.
    Special,
    /// An id without a token.
    Unused,
}

fn kinds(gguf: &Gguf, count: usize) -> Result<Vec<Kind>, LocalError> {
    let key = "tokenizer.ggml.token_type";
    let list = gguf.list(key).filter(|list| list.len() == count);
    let list = list.ok_or_else(|| gguf.error(format!("damaged: `{key}` has not one entry per token")))?;
    let kind = |value: &Value| match value {
        Value::I32(1 | 6) | Value::U32(1 | 6) => Kind::Normal,
        Value::I32(5) | Value::U32(5) => Kind::Unused,
        _ => Kind::Special,
    };
    Ok(list.iter().map(kind).collect())
}

fn strings(gguf: &Gguf, key: &str) -> Result<Vec<String>, LocalError> {
    let list = gguf.list(key).ok_or_else(|| gguf.error(format!("damaged: `{key}` is missing")))?;
    let texts = list.iter().map(|value| value.to_string().ok().cloned());
    texts.collect::<Option<_>>().ok_or_else(|| gguf.error(format!("damaged: `{key}` is no list of texts")))
}

fn special(texts: &[String], kinds: &[Kind]) -> Vec<(String, u32)> {
    let all = (0..).zip(texts).zip(kinds);
    let special = all.filter(|((_, text), kind)| **kind == Kind::Special && !text.is_empty());
    let mut special: Vec<_> = special.map(|((id, text), _)| (text.clone(), id)).collect();
    special.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    special
}

/// The token that the file names, and those by which chat models end a turn.
fn ends(gguf: &Gguf, special: &[(String, u32)], count: usize) -> Result<Vec<u32>, LocalError> {
    const TURN_ENDS: [&str; 4] = ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>"];
    let mut ends = Vec::new();
    for key in ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"] {
        match gguf.number(key) {
            Some(id) if id < count => ends.push(id as u32),
            Some(id) => return Err(gguf.error(format!("damaged: `{key}` is {id} of {count} tokens"))),
            None => {}
        }
    }
    ends.extend(special.iter().filter(|(text, _)| TURN_ENDS.contains(&text.as_str())).map(|(_, id)| *id));
    let mut seen = HashSet::new();
    ends.retain(|id| seen.insert(*id));
    Ok(ends)
}

/// The bytes of each token, with toktrie's mark before those that are not text.
fn words(texts: &[String], kinds: &[Kind]) -> Vec<Vec<u8>> {
    let bytes: HashMap<char, u8> = (0..=255).map(|byte| (byte_char(byte), byte)).collect();
    let word = |(text, kind): (&String, &Kind)| match kind {
        Kind::Normal => text
            .chars()
            .flat_map(|c| match bytes.get(&c) {
                Some(byte) => vec![*byte],
                // Some vocabularies contain plain text among the normal tokens, which is not in the alphabet.
                None => c.to_string().into_bytes(),
            })
            .collect(),
        Kind::Special => [&[TokTrie::SPECIAL_TOKEN_MARKER], text.as_bytes()].concat(),
        Kind::Unused => Vec::new(),
    };
    texts.iter().zip(kinds).map(word).collect()
}

/// The lengths that bound the number of tokens from below.
struct Lengths {
    /// The bytes of the longest token.
    longest: usize,
    /// The bytes that have a token: the tokenizer leaves out others.
    known: [bool; 256],
}

impl Lengths {
    fn of(texts: &[String]) -> Self {
        let singles: HashSet<&str> = texts.iter().map(String::as_str).collect();
        let is_known = |byte: usize| {
            let byte = u8::try_from(byte).unwrap_or_default();
            singles.contains(byte_char(byte).to_string().as_str())
        };
        // A character stands for a byte. Control tokens count: a whole word that looks like one may become one.
        let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        Self { longest: longest.max(1), known: std::array::from_fn(is_known) }
    }

    fn min_tokens<'t>(&self, texts: impl Iterator<Item = &'t str>) -> usize {
        let bytes = texts.flat_map(str::bytes).filter(|byte| self.known[usize::from(*byte)]).count();
        bytes.div_ceil(self.longest)
    }
}

/// The character that GPT-2's alphabet has for a byte: printable ones stand for themselves, others follow from U+0100.
fn byte_char(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    if printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|byte| !printable(*byte)).count() as u32;
    char::from_u32(0x100 + before).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn tokenizer(gguf: &Gguf, texts: Vec<String>) -> Result<Tokenizer, LocalError> {
    let pre = gguf.text("tokenizer.ggml.pre").unwrap_or("default");
    let (pre_tokenizer, ignore_merges) = pre_tokenizer(pre).map_err(|reason| gguf.error(reason))?;
    let merges = strings(gguf, "tokenizer.ggml.merges")?;
    let merges = merges.iter().map(|merge| merge.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())));
    let merges: Merges = merges
        .collect::<Option<_>>()
        .ok_or_else(|| gguf.error("damaged: `tokenizer.ggml.merges` has an entry that is no pair"))?;
    let vocabulary: Vocab = (0..).zip(texts).map(|(id, text)| (text, id)).collect();
    let model = BPE::builder().vocab_and_merges(vocabulary, merges).ignore_merges(ignore_merges).build();
    let model = model.map_err(|error| gguf.error(format!("damaged tokenizer: {error}")))?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(pre_tokenizer));
    Ok(tokenizer)
}

/// Returns the pre-tokenizer of a name of llama.cpp, and whether whole words of the vocabulary skip merging.
fn pre_tokenizer(name: &str) -> Result<(PreTokenizerWrapper, bool), String> {
    // Both are the published patterns of the models' own tokenizer.json; they differ in how digits are grouped.
    const QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    const LLAMA3: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let split = |pattern: &str| -> Result<PreTokenizerWrapper, String> {
        let pattern = SplitPattern::Regex(pattern.to_owned());
        let split =
            Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(|e| e.to_string())?;
        Ok(Sequence::new(vec![split.into(), ByteLevel::new(false, true, false).into()]).into())
    };
    match name {
        // Digits one by one, then GPT-2's pattern. Without the first a number in a prompt is read as other tokens.
        "smollm" => {
            let gpt2 = ByteLevel::new(false, true, true);
            Ok((Sequence::new(vec![Digits::new(true).into(), gpt2.into()]).into(), false))
        }
        "gpt-2" | "default" => Ok((ByteLevel::new(false, true, true).into(), false)),
        "qwen2" => Ok((split(QWEN2)?, false)),
        "llama-bpe" | "llama3" | "llama-v3" => Ok((split(LLAMA3)?, true)),
        other => Err(format!(
            "the pre-tokenizer `{other}` is not supported, only smollm, qwen2, llama-bpe, gpt-2 and default are"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_has_a_character_of_its_own_for_each_byte() {
        let all: HashSet<_> = (0..=255).map(byte_char).collect();
        assert_eq!(all.len(), 256);
        assert_eq!((byte_char(b' '), byte_char(b'\n'), byte_char(b'a')), ('Ġ', 'Ċ', 'a'));
        assert_eq!((byte_char(0xAD), byte_char(0x7F)), ('Ń', 'ġ'));
    }

    #[test]
    fn the_longest_token_bounds_their_number() {
        let mut texts: Vec<String> = (0..=255).map(|byte| byte_char(byte).to_string()).collect();
        let least = |texts: &[String], text: &str| Lengths::of(texts).min_tokens([text, text].into_iter());
        assert_eq!(least(&texts, "abcx"), 8);
        // Six bytes of text, which take more bytes in UTF-8.
        texts.push("ĠĠĊabc".to_owned());
        assert_eq!(least(&texts, "abcx"), 2);
        // A byte without a token is not counted.
        texts.remove(usize::from(b'x'));
        assert_eq!((least(&texts, "abcx"), least(&texts, "xxxx")), (1, 0));
        assert_eq!(least(&[], "abc"), 0);
    }

    #[test]
    fn an_unknown_pre_tokenizer_is_refused_by_name() {
        assert!(pre_tokenizer("tekken").unwrap_err().contains("`tekken`"));
        for name in ["smollm", "qwen2", "llama-bpe", "gpt-2", "default"] {
            assert!(pre_tokenizer(name).is_ok(), "{name}");
        }
    }

    /// The ids are those of llama.cpp's server (b11549) for the same file.
    #[test]
    fn the_default_model_reads_text_as_llama_cpp_does() {
        let path = crate::Store::open().and_then(|store| store.fetch("default"));
        let path = path.unwrap_or_else(|error| panic!("{error}"));
        let vocabulary = Vocabulary::read(&Gguf::open(&path).unwrap()).unwrap();
        let fixtures: [(&str, &[u32]); 7] = [
            (
                "Maria Lindqvist, 34, moved to Lisbon last spring.",
                &[41228, 13861, 97, 102, 363, 28, 216, 35, 36, 28, 4935, 288, 42944, 1596, 4921, 30],
            ),
            (
                "Digits 1234567 and 3.14159, one by one.",
                &[
                    16361, 842, 216, 33, 34, 35, 36, 37, 38, 39, 284, 216, 35, 30, 33, 36, 33, 37, 41, 28,
                    582, 411, 582, 30,
                ],
            ),
            (" leading space, trailing  ", &[2899, 1898, 28, 35079, 256]),
            (
                "naïve café — 東京 🦀\n\n\tend",
                &[3546, 46494, 37366, 1841, 17097, 247, 126, 16736, 122, 15107, 116, 218, 1116, 197, 486],
            ),
            ("don't {\"a\": [1, 2]}", &[12420, 982, 9583, 81, 1799, 933, 33, 28, 216, 34, 28852]),
            ("", &[]),
            ("<|im_end|> is text here", &[44, 108, 306, 79, 486, 108, 46, 314, 1694, 1535]),
        ];
        for (text, ids) in fixtures {
            assert_eq!(vocabulary.encode(text).unwrap(), ids, "{text}");
            assert!(vocabulary.min_tokens([text].into_iter()) <= ids.len(), "{text}");
        }
        let least = vocabulary.min_tokens(["word ".repeat(1_000_000).as_str()].into_iter());
        assert!(least > 8192, "{least} of 5 MB are not enough to refuse them");
        assert_eq!(
            vocabulary.split_special("<|im_end|> is text"),
            [Written::Special(2), Written::Plain(" is text")]
        );
    }
}
