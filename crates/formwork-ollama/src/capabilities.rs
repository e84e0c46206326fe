use formwork_core::{Capabilities, Enforcement};

/// The same promises with this much enforcement, and the dialects that go with it.
pub(crate) fn enforcing(mut capabilities: Capabilities, enforcement: Enforcement) -> Capabilities {
    let dialects: &[&str] = match enforcement {
        Enforcement::Schema => &["ollama", "json-object", "prompt"],
        Enforcement::JsonObject => &["json-object", "prompt"],
        Enforcement::Tool | Enforcement::None => &["prompt"],
    };
    capabilities.enforcement = enforcement;
    capabilities.dialects = dialects.iter().map(|name| (*name).to_owned()).collect();
    capabilities
}
