//! Runs llguidance over single bytes to decide what a lowered schema allows.

use std::sync::LazyLock;

use formwork_core::spaced;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::ApproximateTokEnv;

static FACTORY: LazyLock<ParserFactory> = LazyLock::new(|| {
    let mut factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
    factory.quiet();
    factory
});

/// A matcher for a schema, written with `", "` and `": "`.
pub(crate) fn matcher(schema: &Value) -> Result<Matcher, String> {
    let mut schema = schema.clone();
    schema["x-guidance"] =
        json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    let matcher = Matcher::new(FACTORY.create_parser(TopLevelGrammar::from_json_schema(schema)));
    match matcher.get_error() {
        Some(error) => Err(error),
        None => Ok(matcher),
    }
}

/// Returns whether a schema allows this document.
pub(crate) fn allows(schema: &Value, document: &Value) -> Result<bool, String> {
    let mut matcher = matcher(schema)?;
    // llguidance wants this one control character escaped, which JSON leaves open.
    let text = spaced(document).replace('\u{7f}', "\\u007f");
    let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    let taken = matcher.try_consume_tokens(&tokens).map_err(|error| error.to_string())?;
    Ok(taken == tokens.len() && matcher.is_accepting().map_err(|error| error.to_string())?)
}

/// Returns a random document that a schema allows, byte by byte.
///
/// `draw` returns a number below its argument.
pub(crate) fn sample(schema: &Value, mut draw: impl FnMut(usize) -> usize) -> Result<Value, String> {
    loop {
        let text = sample_text(schema, &mut draw)?;
        match serde_json::from_slice(&text) {
            // A grammar allows exponents that no number type has; such an answer does not parse.
            Err(error) if error.to_string().starts_with("number out of range") => {}
            read => return read.map_err(|error| format!("{error} in {}", String::from_utf8_lossy(&text))),
        }
    }
}

fn sample_text(schema: &Value, draw: &mut impl FnMut(usize) -> usize) -> Result<Vec<u8>, String> {
    let mut matcher = matcher(schema)?;
    let mut text = Vec::new();
    while !matcher.is_stopped() {
        assert!(text.len() < 100_000, "a document without end: {schema}");
        let accepting = matcher.is_accepting().map_err(|error| error.to_string())?;
        let mask = matcher.compute_mask().map_err(|error| error.to_string())?;
        let allowed: Vec<u8> = (0..=255_u8).filter(|byte| mask.is_allowed(u32::from(*byte))).collect();
        if allowed.is_empty() || (accepting && draw(2) == 0) {
            break;
        }
        let likely: Vec<u8> =
            allowed.iter().copied().filter(|byte| b"\"}],:abc019 -".contains(byte)).collect();
        let from = if likely.is_empty() || draw(8) == 0 { &allowed } else { &likely };
        let byte = from[draw(from.len())];
        text.push(byte);
        matcher.consume_token(u32::from(byte)).map_err(|error| error.to_string())?;
    }
    Ok(text)
}
