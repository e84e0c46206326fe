//! Reduces the capabilities of a protocol to those of a model, by its row in the registry.

use formwork_core::{Enforcement, Overrides};
use formwork_dialect::Dialects;
use formwork_dialect::registry::Entry;
#[cfg(feature = "openai")]
use formwork_openai::{OpenAiConfig, Resolved};

#[cfg(feature = "openai")]
use crate::config::Section;

/// The configuration, completed with the row of the model in the registry; `None` if no row is about
/// it: then the vendor's values hold, and a schema that is refused costs one call.
///
/// A row describes the model at its own vendor. For another host it removes capabilities that the model lacks, and adds
/// none.
#[cfg(feature = "openai")]
pub(super) fn promised(
    config: &OpenAiConfig,
    preset: &str,
    now: &Resolved,
    section: &Section,
) -> Option<OpenAiConfig> {
    let row = section.registry().lookup(&format!("{preset}/{}", config.model))?;
    let is_own = row.provider == preset;
    let dialects = &formwork_wire::Wire::capabilities(&now.wire).dialects;
    let mut config = config.clone();
    let preset = formwork_openai::preset(preset);
    if config.dialects.is_none() && (is_own || preset.is_none_or(|preset| !preset.enforces_schemas)) {
        config.dialects = Some(
            dialects.iter().filter(|name| is_possible(name, row, section.dialects())).cloned().collect(),
        );
    }
    let has_flag = is_own && row.dialect.is_some() && preset.is_some_and(|preset| preset.strict_per_model);
    if has_flag && row.native.enforcement() == Enforcement::Schema {
        config.strict = config.strict.or(Some(row.strict));
    }
    restrict(&mut config.capabilities, row, is_own);
    // No vendor takes the penalty where it refuses a temperature.
    let own = &mut config.capabilities;
    own.frequency_penalty = own.frequency_penalty.or_else(|| refused(row.capabilities().temperature));
    Some(config)
}

/// Removes the capabilities that a model lacks, as far as the configuration does not set them.
pub(super) fn restrict(own: &mut Overrides, row: &Entry, is_own: bool) {
    let known = row.capabilities();
    own.temperature = own.temperature.or_else(|| refused(known.temperature));
    own.top_p = own.top_p.or_else(|| refused(known.top_p));
    if is_own {
        own.seed = own.seed.or_else(|| refused(known.seed));
    }
    own.context_tokens = own.context_tokens.or(known.context_tokens);
    own.input_tokens = own.input_tokens.or(known.input_tokens);
    own.output_tokens = own.output_tokens.or(known.output_tokens);
}

/// Returns the setting that removes a capability; `None` if the model has it.
const fn refused(kept: bool) -> Option<bool> {
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
