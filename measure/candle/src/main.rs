//! Greedy decoding with candle's own quantized llama: the peer of `formwork-local`.
//!
//! `candle-peer WEIGHTS.gguf TOKENS SYSTEM USER` prints one line of JSON. It supports only SmolLM2's files, because the chat
//! template and the tokenizer are written in this file.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use candle_core::quantized::{gguf_file::Content, tokenizer::TokenizerFromGguf};
use candle_core::{D, Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use serde_json::json;
use tokenizers::Tokenizer;
use tokenizers::pre_tokenizers::{byte_level::ByteLevel, digits::Digits, sequence::Sequence};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [weights, tokens, system, user] = arguments.as_slice() else {
        return Err("usage: candle-peer WEIGHTS.gguf TOKENS SYSTEM USER".into());
    };
    let tokens: usize = tokens.parse()?;
    let mut file = BufReader::new(File::open(weights)?);
    let content = Content::read(&mut file)?;
    let tokenizer = tokenizer(&content)?;
    let mut model = ModelWeights::from_gguf(content, &mut file, &Device::Cpu)?;
    let prompt = format!(
        "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n"
    );
    let prompt = tokenizer.encode(prompt, false).map_err(|error| error.to_string())?.get_ids().to_vec();

    // The clock starts after the prompt and the first token, so that only decoding is measured.
    let mut answer = vec![next(&mut model, &prompt, 0)?];
    let start = cpu_seconds()?;
    for position in prompt.len()..prompt.len() + tokens {
        let last = answer.last().copied().unwrap_or_default();
        answer.push(next(&mut model, &[last], position)?);
    }
    let seconds = cpu_seconds()? - start;
    let text = tokenizer.decode(&answer, true).map_err(|error| error.to_string())?;
    println!("{}", json!({"prompt": prompt.len(), "tokens": tokens, "seconds": seconds, "text": text}));
    Ok(())
}

/// Corrects the tokenizer: candle treats SmolLM2's vocabulary as GPT-2's, which begins texts with a space and does not split
/// numbers into digits.
fn tokenizer(content: &Content) -> Result<Tokenizer, Box<dyn Error>> {
    let mut tokenizer = Tokenizer::from_gguf(content)?;
    let split = vec![Digits::new(true).into(), ByteLevel::new(false, true, true).into()];
    tokenizer.with_pre_tokenizer(Some(Sequence::new(split)));
    Ok(tokenizer)
}

/// Returns the most probable token after `tokens`, the first of which has the position `position`.
fn next(model: &mut ModelWeights, tokens: &[u32], position: usize) -> candle_core::Result<u32> {
    let input = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
    model.forward(&input, position)?.argmax(D::Minus1)?.squeeze(0)?.to_scalar()
}

/// Returns the CPU time of this process: fields 14 and 15 of `/proc/self/stat` (proc(5)), in hundredths of a second.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat is not what proc(5) says")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}
