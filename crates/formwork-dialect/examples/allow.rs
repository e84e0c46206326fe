use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use toktrie::ApproximateTokEnv;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mut schema: serde_json::Value = serde_json::from_str(&a[1]).unwrap();
    let doc: serde_json::Value = serde_json::from_str(&a[2]).unwrap();
    let mut f = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
    f.quiet();
    schema["x-guidance"] =
        serde_json::json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    let mut m = Matcher::new(f.create_parser(TopLevelGrammar::from_json_schema(schema)));
    if let Some(e) = m.get_error() {
        println!("{e}");
        return;
    }
    let text = formwork_core::spaced(&doc);
    let t: Vec<u32> = text.bytes().map(u32::from).collect();
    let n = m.try_consume_tokens(&t).unwrap();
    println!("{} of {} accepting {:?}: {}", n, t.len(), m.is_accepting(), &text[..n]);
}
