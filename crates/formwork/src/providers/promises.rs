//! Reduces the capabilities of a protocol to those of a model, by its row in the registry.

use formwork_core::Enforcement;
use formwork_dialect::Dialects;
use formwork_dialect::registry::Entry;
#[cfg(feature = "openai")]
use formwork_openai::{Config, Resolved};

#[cfg(feature = "openai")]
use crate::config::Section;

/// The servers that enforce schemas themselves for every model: rows about a vendor's own service do not apply to them.
#[cfg(feature = "openai")]
const OWN_ENFORCEMENT: [&str; 5] = ["llama-server", "lm-studio", "ollama-v1", "sglang", "vllm"];

/// The dialects of vendors that take `strict` beside a schema.
#[cfg(feature = "openai")]
const STRICT_FLAG: [&str; 5] = ["azure", "groq", "mistral", "openai", "xai"];

/// The configuration, completed with the row of the model in the registry; `None` if no row is about
/// it: then the vendor's values hold, and a schema that is refused costs one call.
///
/// A row describes the model at its own vendor. For another host it removes capabilities that the model lacks, and adds
/// none.
#[cfg(feature = "openai")]
pub(super) fn promised(config: &Config, preset: &str, now: &Resolved, section: &Section) -> Option<Config> {
    let row = section.registry().lookup(&format!("{preset}/{}", config.model))?;
    let is_own = row.provider == preset;
    let known = row.capabilities();
    let dialects = &formwork_wire::Wire::capabilities(&now.wire).dialects;
    let mut config = config.clone();
    let enforces_itself = !is_own && OWN_ENFORCEMENT.contains(&preset);
    if config.dialects.is_none() && !enforces_itself {
        config.dialects = Some(
            dialects.iter().filter(|name| is_possible(name, row, section.dialects())).cloned().collect(),
        );
    }
    let has_flag = row.dialect.as_deref().is_some_and(|name| STRICT_FLAG.contains(&name));
    if is_own && row.native.enforcement() == Enforcement::Schema && has_flag {
        config.strict = config.strict.or(Some(row.strict));
    }
    let own = &mut config.capabilities;
    own.temperature = own.temperature.or_else(|| refused(known.temperature));
    own.top_p = own.top_p.or_else(|| refused(known.top_p));
    // No vendor takes the penalty where it refuses a temperature.
    own.frequency_penalty = own.frequency_penalty.or_else(|| refused(known.temperature));
    if is_own {
        own.seed = own.seed.or_else(|| refused(known.seed));
    }
    own.context_tokens = own.context_tokens.or(known.context_tokens);
    own.output_tokens = own.output_tokens.or(known.output_tokens);
    Some(config)
}

/// Returns the setting that removes a capability; `None` if the model has it.
pub(super) const fn refused(kept: bool) -> Option<bool> {
    if kept { None } else { Some(false) }
}

/// Returns whether a model supports a dialect that its host accepts.
pub(super) fn is_possible(dialect: &str, row: &Entry, dialects: &Dialects) -> bool {
    let Ok(lower) = dialects.get(dialect) else { return true };
    match lower.enforcement() {
        Enforcement::None => true,
        Enforcement::JsonObject => row.json_object || row.native.enforcement() != Enforcement::None,
        enforcement => row.native.enforcement() == enforcement,
    }
}
