//! Lowers the schemas of recorded requests for the provider that accepted them.

use std::collections::{BTreeMap, BTreeSet};

use formwork_core::{Lower as _, LowerRequest, Tighten};
use formwork_dialect::{Native, Reaction, lint};
use serde_json::Value;

use crate::corpora::text;

/// The schemas that a provider accepted (status 2xx), and their lowerings.
#[derive(Default)]
struct Taken {
    schemas: usize,
    /// Schemas that are lowered without an error.
    lowered: usize,
    /// Lowered schemas in which the linter of the dialect finds nothing.
    clean: usize,
    /// Recorded schemas of an enforced format in which the linter finds something that the provider would reject.
    accused: usize,
    /// The keywords of the recorded schemas.
    seen: BTreeSet<String>,
    /// The keywords of the lowered schemas, and the number of schemas with each.
    sent: BTreeMap<String, usize>,
}

/// A recorded schema.
struct Recorded<'r> {
    dialect: Native,
    schema: std::borrow::Cow<'r, Value>,
    /// Whether the provider enforced the schema: an output format, or a strict tool.
    enforced: bool,
}

/// Prints the lowerings of the accepted schemas for each provider and dialect.
pub(super) fn print(rows: &[Value], out: &mut impl std::io::Write) -> std::io::Result<()> {
    let mut all: BTreeMap<(&str, String), Taken> = BTreeMap::new();
    for row in rows.iter().filter(|row| row["status"].as_u64().is_some_and(|status| status < 300)) {
        for Recorded { dialect, schema, enforced } in recorded(row) {
            let taken = all.entry((text(row, "provider"), dialect.name().to_owned())).or_default();
            taken.schemas += 1;
            keywords(&schema, &mut |keyword| _ = taken.seen.insert(keyword.to_owned()));
            let rejects = |schema: &Value| {
                lint(dialect.name(), schema).into_iter().find(|finding| finding.verdict == Reaction::Rejected)
            };
            if let Some(finding) = rejects(&schema).filter(|_| enforced) {
                taken.accused += 1;
                writeln!(
                    out,
                    "  {} {}: taken, and the linter says {finding}",
                    text(row, "id"),
                    dialect.name()
                )?;
            }
            // The OpenAPI subset has upper-case names of types.
            let openapi =
                if dialect.name() == "gemini-openapi" { lower_case(&schema) } else { schema.into_owned() };
            let request = LowerRequest::new(&openapi).with_tighten(Tighten::Closed);
            let lowered = match dialect.lower(&request) {
                Ok(lowered) => lowered,
                Err(refused) => {
                    writeln!(out, "  {} {}: {refused}", text(row, "id"), dialect.name())?;
                    continue;
                }
            };
            taken.lowered += 1;
            let Some(sent) = &lowered.schema else { continue };
            taken.clean += usize::from(lint(dialect.name(), sent).is_empty());
            let mut mine = BTreeSet::new();
            keywords(sent, &mut |keyword| _ = mine.insert(keyword.to_owned()));
            for keyword in mine {
                *taken.sent.entry(keyword).or_default() += 1;
            }
        }
    }
    writeln!(out, "schemas of requests that were taken, lowered:")?;
    for ((provider, dialect), taken) in all {
        let Taken { schemas, lowered, clean, accused, seen, sent } = taken;
        writeln!(
            out,
            "  {provider:<45} {dialect:<15} {schemas:>4} schemas, {lowered} lowered, {clean} without a finding; \
             {accused} recorded ones that the linter would have kept back"
        )?;
        let new: Vec<_> = sent.iter().filter(|(keyword, _)| !seen.contains(*keyword)).collect();
        if !new.is_empty() {
            writeln!(out, "    keywords that were not seen there: {new:?}")?;
        }
    }
    Ok(())
}

/// Returns the schemas of a request, each with the dialect of its property.
fn recorded(row: &Value) -> Vec<Recorded<'_>> {
    let (request, provider) = (&row["request"], text(row, "provider"));
    let own = match provider {
        name if name.contains("anthropic") || name.contains("bedrock") => Native::ANTHROPIC,
        name if name.contains("googleapis") => Native::GEMINI,
        name if name.contains("groq") => Native::GROQ,
        name if name.contains("mistral") => Native::MISTRAL,
        name if name.contains("cohere") => Native::COHERE,
        _ => Native::OPENAI,
    };
    let mut found = Vec::new();
    let mut add = |schema: &Value, dialect: Native, enforced: bool| {
        // Bedrock requires the schema of an output format as text.
        let parsed = schema.as_str().and_then(|text| serde_json::from_str(text).ok());
        if let Some(schema) = parsed.or_else(|| schema.is_object().then(|| schema.clone())) {
            found.push(Recorded { dialect, schema: std::borrow::Cow::Owned(schema), enforced });
        }
    };
    for path in [
        "/output_config/format/schema",
        "/outputConfig/textFormat/structure/jsonSchema/schema",
        "/response_format/json_schema/schema",
        "/text/format/schema",
        "/generationConfig/responseJsonSchema",
        "/generationConfig/response_json_schema",
    ] {
        let strict = path.starts_with("/response_format") || path.starts_with("/text");
        let format = if strict { request.pointer(path.trim_end_matches("/schema")) } else { None };
        let enforced = format.is_none_or(|format| format["strict"] == true);
        request.pointer(path).into_iter().for_each(|schema| add(schema, own, enforced));
    }
    let tools = [&request["tools"], &request["toolConfig"]["tools"]];
    for tool in tools.into_iter().filter_map(Value::as_array).flatten() {
        let declared = tool["functionDeclarations"].as_array().into_iter().flatten();
        for tool in [tool, &tool["function"], &tool["toolSpec"]].into_iter().chain(declared) {
            let strict = tool["strict"] == true;
            add(&tool["input_schema"], own, strict);
            add(&tool["inputSchema"]["json"], own, strict);
            add(&tool["parametersJsonSchema"], own, false);
            add(&tool["parameters_json_schema"], own, false);
            let subset = provider.contains("googleapis");
            add(&tool["parameters"], if subset { Native::GEMINI_OPENAPI } else { own }, strict && !subset);
        }
    }
    found
}

/// Returns a schema with the type names of JSON Schema.
fn lower_case(schema: &Value) -> Value {
    let member = |(name, value): (&String, &Value)| match value {
        Value::String(text) if name == "type" => (name.clone(), Value::from(text.to_lowercase())),
        value => (name.clone(), lower_case(value)),
    };
    match schema {
        Value::Object(members) => Value::Object(members.iter().map(member).collect()),
        Value::Array(items) => items.iter().map(lower_case).collect(),
        other => other.clone(),
    }
}

/// Calls `each` for the keywords of a schema and of the schemas in it: `type` with its values, the others by name.
fn keywords(schema: &Value, each: &mut impl FnMut(&str)) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members {
        match keyword.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" => {
                each(keyword);
                let inner = value.as_object().into_iter().flat_map(|inner| inner.values());
                inner.for_each(|inner| keywords(inner, each));
            }
            "type" => match value {
                Value::String(name) => each(&format!("type {}", name.to_lowercase())),
                _ => each("type […]"),
            },
            "title" | "description" | "default" | "examples" => {}
            "enum" | "const" | "required" => each(keyword),
            _ => {
                each(keyword);
                match value {
                    Value::Array(items) => items.iter().for_each(|item| keywords(item, each)),
                    other => keywords(other, each),
                }
            }
        }
    }
}
