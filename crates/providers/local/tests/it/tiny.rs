//! Models of a few kilobytes: random weights, a vocabulary of single bytes, and everything else as in a real file.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

const HIDDEN: usize = 32;
const FEED_FORWARD: usize = 64;
const LAYERS: usize = 2;
const HEADS: usize = 4;
const KV: usize = 2 * HIDDEN / HEADS;
pub(crate) const CONTEXT: usize = 1024;

/// The first of the three control tokens, after 256 bytes and 4 merged tokens.
pub(crate) const END_OF_TEXT: u32 = 260;

/// The contents of a model file; tests change it to damage files.
pub(crate) struct Tiny {
    pub(crate) metadata: BTreeMap<String, Value>,
    pub(crate) dtype: GgmlDType,
    architecture: &'static str,
}

impl Tiny {
    pub(crate) fn new(architecture: &'static str) -> Self {
        let number = |number: usize| Value::U32(number as u32);
        let text = |text: &str| Value::String(text.to_owned());
        let texts = |list: Vec<String>| Value::Array(list.into_iter().map(Value::String).collect());
        let merged = ["th", "in", "Ġt", "\"Ġ"];
        let mut tokens: Vec<String> = (0..=255).map(|byte| alphabet(byte).to_string()).collect();
        tokens.extend(merged.map(str::to_owned));
        tokens.extend(["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map(str::to_owned));
        let kinds = (0..tokens.len()).map(|id| Value::I32(if id < 260 { 1 } else { 3 })).collect();
        let merges = ["t h", "i n", "Ġ t", "\" Ġ"].map(str::to_owned).to_vec();
        let key = |name: &str| format!("{architecture}.{name}");
        let metadata = [
            ("general.architecture".to_owned(), text(architecture)),
            ("general.name".to_owned(), text("Tiny")),
            ("tokenizer.ggml.model".to_owned(), text("gpt2")),
            ("tokenizer.ggml.pre".to_owned(), text(if architecture == "llama" { "smollm" } else { "qwen2" })),
            ("tokenizer.ggml.tokens".to_owned(), texts(tokens)),
            ("tokenizer.ggml.token_type".to_owned(), Value::Array(kinds)),
            ("tokenizer.ggml.merges".to_owned(), texts(merges)),
            ("tokenizer.ggml.eos_token_id".to_owned(), Value::U32(END_OF_TEXT + 2)),
            (key("block_count"), number(LAYERS)),
            (key("context_length"), number(CONTEXT)),
            (key("embedding_length"), number(HIDDEN)),
            (key("feed_forward_length"), number(FEED_FORWARD)),
            (key("attention.head_count"), number(HEADS)),
            (key("attention.head_count_kv"), number(2)),
            (key("attention.layer_norm_rms_epsilon"), Value::F32(1e-5)),
        ];
        Self { metadata: metadata.into(), dtype: GgmlDType::Q8_0, architecture }
    }

    pub(crate) fn with(mut self, key: &str, value: Value) -> Self {
        self.metadata.insert(key.to_owned(), value);
        self
    }

    /// Writes the file and returns its path.
    pub(crate) fn write(&self, folder: &Path) -> PathBuf {
        let mut random = Random(7);
        let mut tensors = Vec::new();
        let mut matrix = |name: String, rows: usize, columns: usize| {
            let numbers: Vec<f32> = (0..rows * columns).map(|_| random.next() * 0.5).collect();
            let tensor = Tensor::from_vec(numbers, (rows, columns), &Device::Cpu).unwrap();
            tensors.push((name, QTensor::quantize(&tensor, self.dtype).unwrap()));
        };
        matrix("token_embd.weight".to_owned(), END_OF_TEXT as usize + 3, HIDDEN);
        for layer in 0..LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}.weight");
            matrix(name("attn_q"), HIDDEN, HIDDEN);
            matrix(name("attn_k"), KV, HIDDEN);
            matrix(name("attn_v"), KV, HIDDEN);
            matrix(name("attn_output"), HIDDEN, HIDDEN);
            matrix(name("ffn_gate"), FEED_FORWARD, HIDDEN);
            matrix(name("ffn_up"), FEED_FORWARD, HIDDEN);
            matrix(name("ffn_down"), HIDDEN, FEED_FORWARD);
        }
        let mut vector = |name: String, length: usize, value: f32| {
            let tensor = Tensor::full(value, length, &Device::Cpu).unwrap();
            tensors.push((name, QTensor::quantize(&tensor, GgmlDType::F32).unwrap()));
        };
        vector("output_norm.weight".to_owned(), HIDDEN, 1.0);
        for layer in 0..LAYERS {
            vector(format!("blk.{layer}.attn_norm.weight"), HIDDEN, 1.0);
            vector(format!("blk.{layer}.ffn_norm.weight"), HIDDEN, 1.0);
            if self.architecture == "qwen2" {
                vector(format!("blk.{layer}.attn_q.bias"), HIDDEN, 0.1);
                vector(format!("blk.{layer}.attn_k.bias"), KV, 0.1);
                vector(format!("blk.{layer}.attn_v.bias"), KV, 0.1);
            }
        }
        let path = folder.join(format!("{}.gguf", self.architecture));
        let metadata: Vec<_> = self.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &tensors).unwrap();
        path
    }
}

/// Returns GPT-2's character for a byte.
fn alphabet(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    match printable(byte) {
        true => char::from(byte),
        false => char::from_u32(0x100 + (0..byte).filter(|byte| !printable(*byte)).count() as u32).unwrap(),
    }
}

/// A linear congruential generator (Numerical Recipes): the same weights everywhere.
struct Random(u32);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as f32 / (1 << 23) as f32 - 1.0
    }
}
