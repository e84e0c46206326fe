use std::sync::Arc;

use formwork_core::{Capabilities, Lower};

use crate::{JsonObject, Native, Prompt};

/// The names of all dialects, for messages and documentation.
pub const DIALECTS: [&str; 7] =
    ["openai", "llama-cpp", "ollama", "llguidance", "json-object", "prompt", "prompt-outline"];

/// The dialect of this name.
///
/// ```
/// assert_eq!(formwork_dialect::dialect("llguidance").unwrap().name(), "llguidance");
/// assert!(formwork_dialect::dialect("esperanto").is_none());
/// assert!(formwork_dialect::DIALECTS.iter().all(|name| formwork_dialect::dialect(name).unwrap().name() == *name));
/// ```
pub fn dialect(name: &str) -> Option<Arc<dyn Lower>> {
    Some(match name {
        "openai" => Arc::new(Native::OPENAI),
        "llama-cpp" => Arc::new(Native::LLAMA_CPP),
        "ollama" => Arc::new(Native::OLLAMA),
        "llguidance" => Arc::new(Native::LLGUIDANCE),
        "json-object" => Arc::new(JsonObject),
        "prompt" => Arc::new(Prompt::new()),
        "prompt-outline" => Arc::new(Prompt::outline()),
        _ => return None,
    })
}

/// The ways of asking a provider, the strictest first: the dialects that it says it takes, then the prompt alone.
///
/// ```
/// use formwork_core::{Capabilities, Enforcement};
///
/// let local = Capabilities::new(Enforcement::Schema).with_dialect("llguidance");
/// let names: Vec<_> = formwork_dialect::rungs(&local).iter().map(|rung| rung.name().to_owned()).collect();
/// assert_eq!(names, ["llguidance", "prompt"]);
/// ```
pub fn rungs(capabilities: &Capabilities) -> Vec<Arc<dyn Lower>> {
    let mut rungs: Vec<Arc<dyn Lower>> =
        capabilities.dialects.iter().filter_map(|name| dialect(name)).collect();
    if !rungs.iter().any(|rung| rung.name().starts_with("prompt")) {
        rungs.push(Arc::new(Prompt::new()));
    }
    rungs
}
