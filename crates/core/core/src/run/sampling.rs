//! Parameters of sampling that a server refuses.
//!
//! A call does without them, so a refusal costs one call. Schemas, tools and limits of tokens are never left out: without them an
//! answer means something else.

use crate::{Fault, FaultKind, Sampling, SamplingParameter};

/// The names that servers have for the parameters, those that conflict with an earlier one last: of a temperature and `top_p` that
/// exclude each other, the temperature stays.
const NAMES: [(SamplingParameter, &[&str]); 4] = [
    (SamplingParameter::Seed, &["seed"]),
    (SamplingParameter::FrequencyPenalty, &["frequency_penalty", "frequencypenalty", "frequency-penalty"]),
    (SamplingParameter::TopP, &["top_p", "topp", "top-p"]),
    (SamplingParameter::Temperature, &["temperature"]),
];

/// Messages of servers that do not support a parameter (OpenAI, Azure, Anthropic, Gemini, Mistral, Groq, Bedrock; 2026).
const COMPLAINTS: [&str; 16] = [
    "not support",
    "unsupported",
    "isn't supported",
    "does not take",
    "deprecated",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra inputs",
    "cannot both",
    "may only",
    "must be",
    "only the default",
    "not available",
];

/// Returns the parameter of this sampling that the fault of a call names as refused.
pub(super) fn refused(fault: &Fault, sampling: &Sampling) -> Option<SamplingParameter> {
    let is_refusal = matches!(fault.kind, FaultKind::BadRequest | FaultKind::Unsupported)
        && matches!(fault.status, Some(400 | 422));
    if !is_refusal {
        return None;
    }
    let message = fault.message.to_lowercase();
    let words: Vec<&str> = message
        .split(|letter: char| !letter.is_ascii_alphanumeric() && !"_-".contains(letter))
        .filter(|word| !word.is_empty())
        .collect();
    let is_complaint = COMPLAINTS.iter().any(|complaint| message.contains(complaint));
    let is_sent = |parameter: SamplingParameter| take(&mut sampling.clone(), parameter);
    let named = |(_, names): &&(SamplingParameter, &[&str])| words.iter().any(|word| names.contains(word));
    let found = NAMES.iter().filter(named).map(|(parameter, _)| *parameter).find(|one| is_sent(*one));
    found.filter(|_| is_complaint)
}

/// Takes a parameter out of a sampling; returns whether it was there.
pub(super) fn take(sampling: &mut Sampling, parameter: SamplingParameter) -> bool {
    match parameter {
        SamplingParameter::Temperature => sampling.temperature.take().is_some(),
        SamplingParameter::TopP => sampling.top_p.take().is_some(),
        SamplingParameter::Seed => sampling.seed.take().is_some(),
        SamplingParameter::FrequencyPenalty => sampling.frequency_penalty.take().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_named_parameter_of_sampling_is_refused() {
        let all = Sampling::default()
            .with_temperature(0.2)
            .with_top_p(0.9)
            .with_seed(7)
            .with_frequency_penalty(0.5);
        let bad = FaultKind::BadRequest;
        for (kind, status, words, expected) in [
            (
                bad,
                400,
                "Unsupported value: 'temperature' does not support 0.2 with this model.",
                "temperature",
            ),
            (
                bad,
                400,
                "Unsupported parameter: 'frequency_penalty' is not supported with this model.",
                "frequency_penalty",
            ),
            (bad, 400, "`temperature` and `top_p` cannot both be specified for this model.", "top_p"),
            (bad, 422, "body.seed: Extra inputs are not permitted", "seed"),
            (FaultKind::Unsupported, 400, "inferenceConfig.topP is not supported", "top_p"),
            // Required parameters are never omitted, and a word in a prompt is no parameter name.
            (bad, 400, "Unsupported parameter: 'max_tokens' is not supported with this model.", ""),
            (bad, 400, "tools are not supported", ""),
            (bad, 400, "the prompt about the temperature is too long", ""),
            (FaultKind::SchemaRefused, 400, "schema: `temperature` is not permitted", ""),
            (FaultKind::Overloaded, 500, "temperature unsupported", ""),
        ] {
            let fault = Fault::new(kind, words).with_status(status);
            let found = refused(&fault, &all).map_or("", SamplingParameter::name);
            assert_eq!(found, expected, "{words}");
            assert_eq!(refused(&fault, &Sampling::default()), None, "nothing was sent");
        }
    }
}
