use formwork_core::Usage;
use formwork_wire::lenient::Count;

use super::shape::{Counts, Shape};

/// Returns the usage in a document: `usage`, or the property in which Groq or Moonshot send it in streams.
pub(super) fn usage_in(document: &Shape<'_>) -> Option<Usage> {
    let places = [&document.usage, &document.x_groq.usage, &document.choices.choice.usage];
    places.into_iter().find_map(usage_of)
}

/// Returns the usage, or `None` if the counts are missing.
fn usage_of(counts: &Counts) -> Option<Usage> {
    let (Count(prompt), Count(completion)) = (counts.prompt, counts.completion);
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let input_tokens = prompt.unwrap_or_default();
    let mut output_tokens = completion.unwrap_or_default();
    let reasoning_tokens = counts.completion_details.reasoning.0.unwrap_or_default();
    // xAI does not include reasoning in the completion tokens; the total reveals it.
    let with_reasoning = output_tokens.saturating_add(reasoning_tokens);
    if counts.total.0 == Some(input_tokens.saturating_add(with_reasoning)) {
        output_tokens = with_reasoning;
    }
    let cached_tokens = counts.prompt_details.cached.0.or(counts.cache_hit.0).unwrap_or_default();
    Some(Usage::new(input_tokens, output_tokens).with_cached(cached_tokens).with_reasoning(reasoning_tokens))
}
