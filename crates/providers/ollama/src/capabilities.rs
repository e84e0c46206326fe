use formwork_core::{Capabilities, Enforcement};

/// Returns the capabilities with this enforcement and the dialects that belong to it.
pub(crate) fn enforcing(mut capabilities: Capabilities, enforcement: Enforcement) -> Capabilities {
    let dialects: &[&str] = match enforcement {
        Enforcement::Schema => &["ollama", "json-object", "prompt"],
        Enforcement::JsonObject => &["json-object", "prompt"],
        _ => &["prompt"],
    };
    capabilities.enforcement = enforcement;
    capabilities.dialects = dialects.iter().map(|name| (*name).to_owned()).collect();
    capabilities
}
