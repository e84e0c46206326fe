//! Invalid model files: each has a one-line error, and none panics, hangs or exhausts the memory.

use std::fs;
use std::path::Path;

use candle_core::quantized::gguf_file::Value;
use formwork_local::{Local, LocalError, LocalOptions, Store};

use crate::tiny::Tiny;

fn error(path: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let options = LocalOptions::new()
        .with_model(path.to_str().unwrap())
        .with_store(Store::at(folder.path()).with_offline(true));
    let error = Local::open(options).unwrap_err();
    assert!(!matches!(error, LocalError::Thread(_)), "{error}");
    let message = error.to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

fn says(tiny: &Tiny, words: &str) {
    let folder = tempfile::tempdir().unwrap();
    let message = error(&tiny.write(folder.path()));
    assert!(message.contains(words), "{message}");
}

#[test]
fn foreign_models_are_named() {
    let text = |text: &str| Value::String(text.to_owned());
    let llama = || Tiny::new("llama");
    says(&llama().with("general.architecture", text("mamba")), "architecture `mamba` is not supported");
    says(&llama().with("tokenizer.ggml.model", text("llama")), "tokenizer model `llama` is not supported");
    says(&llama().with("llama.rope.scaling.type", text("yarn")), "rope scaling");
    says(&llama().with("tokenizer.ggml.pre", text("tekken")), "pre-tokenizer `tekken`");
    says(&llama().with("llama.expert_count", Value::U32(8)), "mixture of experts");
}

#[test]
fn absurd_numbers_are_damage() {
    let number = |key: &str, number: u32| says(&Tiny::new("llama").with(key, Value::U32(number)), "");
    for key in
        ["block_count", "embedding_length", "feed_forward_length", "attention.head_count", "context_length"]
    {
        for absurd in [0, 3, u32::MAX] {
            if (key, absurd) != ("context_length", 3) {
                number(&format!("llama.{key}"), absurd);
            }
        }
    }
    number("tokenizer.ggml.eos_token_id", 1 << 20);
}

#[test]
fn other_files_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.gguf");
    for (content, words) in [
        (&b""[..], "the file is empty"),
        (b"GG", "not a GGUF file"),
        (b"PK\x03\x04wheel", "unzip"),
        (b"{\"json\": true}", "not a GGUF file"),
        (b"GGUF\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x7f", "damaged"),
    ] {
        fs::write(&file, content).unwrap();
        assert!(error(&file).contains(words), "{}", error(&file));
    }
    assert!(error(&folder.path().join("missing.gguf")).contains("there is no such file"));
    assert!(error(folder.path()).ends_with("it is a folder: name the .gguf file in it"));
}

#[test]
fn a_file_cut_or_changed_anywhere_is_refused_or_runs() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(Tiny::new("llama").write(folder.path())).unwrap();
    let file = folder.path().join("x.gguf");
    for tenth in 0..20 {
        fs::write(&file, &whole[..whole.len() * tenth / 20]).unwrap();
        error(&file);
    }
    // Every byte of the header counts, and most of this file is header.
    for at in (4..whole.len().min(6000)).step_by(29) {
        for flip in [0x01, 0x80, 0xFF] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            fs::write(&file, &bytes).unwrap();
            let options = LocalOptions::new()
                .with_model(file.to_str().unwrap())
                .with_store(Store::at(folder.path()).with_offline(true));
            if let Err(error) = Local::open(options) {
                assert!(!matches!(error, LocalError::Thread(_)), "byte {at}: {error}");
            }
        }
    }
}

#[test]
fn a_context_that_no_memory_holds_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = Tiny::new("llama")
        .with("llama.context_length", Value::U32(1 << 24))
        .with("llama.attention.key_length", Value::U32(8))
        .write(folder.path());
    let options = LocalOptions::new().with_model(path.to_str().unwrap()).with_store(Store::at(folder.path()));
    // 4 GB for a tiny model: either the allocation succeeds, or there is an error.
    if let Err(error) = Local::open(options.with_context(u32::MAX)) {
        assert!(error.to_string().contains("ask for a shorter one"), "{error}");
    }
}
