#![expect(clippy::unwrap_used, reason = "a test may simply fail")]
//! Shapes: their meaning, the messages about mistakes, and the scenes of the shape runner.

mod mistakes;
mod parsing;
mod properties;
mod scenes;
mod schema;
mod strategy;

/// The shape of the ShapeRunner document, byte for byte.
const DOCUMENT: &str = r#"{
  "name": string,           // Required field
  "rationale": markdown,     // Required field  
  "components": [           // Required array
    {
      "id": string,
      "responsibility": string,
      "api": markdown
    }
  ],
  "risks": [string]         // Required array of strings
}"#;
