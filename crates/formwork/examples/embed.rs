//! Uses the whole family under one name: a Rust type, checks of your own, and a model.
//!
//! `cargo run -p formwork --example embed` uses a scripted model; with `--features local` it runs one in this process.

use formwork::Extractor;

#[derive(Debug, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
struct Person {
    name: String,
    #[schemars(range(max = 150))]
    age: u8,
    city: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let extractor = Extractor::<Person>::builder()
        .with_target(model()?)
        .check("$.age", "adult", |person| if person.age >= 18 { Ok(()) } else { Err("at least 18".into()) })
        .with_seed(7)
        .build()?;
    let outcome = extractor.extract_blocking("Maria Lindqvist, 34, moved to Lisbon last spring.")?;
    println!("{:?} after {} calls", outcome.value, outcome.calls.len());
    Ok(())
}

#[cfg(not(feature = "local"))]
fn model() -> Result<std::sync::Arc<formwork_testkit::Scripted>, formwork::Error> {
    let answers = [r#"{"name": "Maria Lindqvist", "age": 3, "city": "Lisbon"}"#, r#"{"age": 34}"#];
    Ok(std::sync::Arc::new(formwork_testkit::Scripted::new(answers)))
}

#[cfg(feature = "local")]
fn model() -> Result<std::sync::Arc<formwork::local::Local>, Box<dyn std::error::Error>> {
    Ok(std::sync::Arc::new(formwork::local::Local::open(formwork::local::LocalOptions::new())?))
}
