use std::fmt;

use formwork_core::{Enforcement, Lower, LowerRequest, Lowered, Refused, SchemaText, Tighten};
use serde_json::Value;

use crate::anthropic::ANTHROPIC;
use crate::azure::AZURE;
use crate::cohere::COHERE;
use crate::expand::{Expanded, expand, reported};
use crate::gemini::{GEMINI, GEMINI_OPENAPI};
use crate::groq::GROQ;
use crate::limits::Size;
use crate::lint::findings;
use crate::mistral::MISTRAL;
use crate::order::Order;
use crate::outline::outline;
use crate::profile::{LLAMA_CPP, LLGUIDANCE, Limits, OLLAMA, OPENAI, Profile};
use crate::reshape::reshape;
use crate::tighten::{bound, close};
use crate::write::{Written, write};
use crate::xai::XAI;
use crate::xgrammar::XGRAMMAR;
use crate::{Dialect, LintFinding};

/// The dialect of a provider that keeps a model to a schema.
///
/// A keyword that the dialect cannot say is said in another shape that [`lift`](formwork_core::lift) maps back, or left to
/// the validator, with a loss. No valid answer is excluded, with one exception: an object that names its members and leaves
/// open whether there are others is closed, unless the request [says otherwise](formwork_core::Tighten).
///
/// ```
/// use formwork_core::{LossKind, Lower, LowerRequest};
/// use formwork_dialect::Native;
///
/// let schema = serde_json::json!({"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": true}}});
/// let lowered = Native::LLGUIDANCE.lower(&LowerRequest::new(&schema))?;
/// let sent = lowered.schema.unwrap();
/// assert_eq!(sent["additionalProperties"], false);
/// assert_eq!(sent["properties"]["tags"], serde_json::json!({"type": "array", "items": {}}));
/// let losses: Vec<_> = lowered.losses.iter().map(|loss| (loss.keyword.as_str(), loss.kind)).collect();
/// assert_eq!(losses, [("additionalProperties", LossKind::Tightened), ("uniqueItems", LossKind::Unenforced)]);
/// # Ok::<(), formwork_core::Refused>(())
/// ```
#[derive(Clone, Copy)]
pub struct Native {
    profile: &'static Profile,
}

impl Native {
    /// The `llguidance` crate (1.9), in process, and in vLLM and SGLang where it is configured there. The model reads an outline of the schema.
    pub const LLGUIDANCE: Self = Self { profile: &LLGUIDANCE };

    /// OpenAI's strict mode (`response_format`, `text.format`, strict tools).
    ///
    /// Every member is required; an optional one may be `null`, which stands for absent, or, where `null` is a value of it,
    /// the object `{"absent": true}`. Maps are arrays of `{"key", "value"}`, tuples are objects, a root that is no object is
    /// wrapped in `{"value": …}`. The provider shows the schema to the model, so annotations are sent, with the constraints
    /// that are not enforced in words. Objects and arrays nested more than 10 levels deep become JSON in a string; where
    /// more than 1,000 values are listed, the longest lists are left to the validator.
    pub const OPENAI: Self = Self { profile: &OPENAI };

    /// Azure's strict mode: as [`OPENAI`](Self::OPENAI), without bounds, lengths, patterns and formats, which are sent as words, and
    /// with smaller limits (100 members, five levels of nesting).
    pub const AZURE: Self = Self { profile: &AZURE };

    /// Groq's structured outputs: the shape of [`AZURE`](Self::AZURE) in the limits of OpenAI.
    pub const GROQ: Self = Self { profile: &GROQ };

    /// Mistral's structured outputs: closed objects whose members may be left out; all further constraints are words.
    pub const MISTRAL: Self = Self { profile: &MISTRAL };

    /// xAI's structured outputs: as [`MISTRAL`](Self::MISTRAL), with formats, and without definitions that contain themselves.
    pub const XAI: Self = Self { profile: &XAI };

    /// Cohere's structured outputs: the shape of [`AZURE`](Self::AZURE) with dates, times and UUIDs; an object without members
    /// is JSON in a string.
    pub const COHERE: Self = Self { profile: &COHERE };

    /// xgrammar (0.2.8), the engine of vLLM and SGLang. The model reads an outline of the schema.
    ///
    /// Lengths of strings and bounds on numbers that are no integers are left to the validator, because the engine would
    /// forbid valid strings and numbers with them. Patterns are rewritten to those that it matches as they are meant.
    pub const XGRAMMAR: Self = Self { profile: &XGRAMMAR };

    /// Anthropic's structured outputs (`output_config.format`, strict tools).
    ///
    /// Members that are required come first. Bounds on numbers, lengths, and patterns that are not simple are sent as words
    /// and left to the validator. Maps are arrays of `{"key", "value"}`, tuples are objects, a root that is no object is
    /// wrapped in `{"value": …}`. Any value, and the second nesting of a definition in itself, are JSON in a string, because
    /// the API takes neither. A schema with more than 24 optional members or 16 unions is refused before the call.
    pub const ANTHROPIC: Self = Self { profile: &ANTHROPIC };

    /// llama.cpp's server (b11434), not built with llguidance. The model reads an outline of the schema.
    ///
    /// Members that are required come first. Bounds on numbers that are no integers, `multipleOf` and formats other than
    /// dates, times and UUIDs are left to the validator. Patterns are rewritten to those that its converter understands,
    /// from `^` to `$`; a pattern that it would misread, or die of, is never sent.
    pub const LLAMA_CPP: Self = Self { profile: &LLAMA_CPP };

    /// Ollama, which hands schemas to llama.cpp.
    ///
    /// For some models it sorts the keys of the schema first, and keys are generated in that order. Where a declared
    /// [dependency](formwork_core::Dependency) would be broken by that, and only there, the names of the object's members
    /// get a letter in front (`a_parts`, `b_score`), which is taken off again. It costs nothing where keys are not sorted.
    pub const OLLAMA: Self = Self { profile: &OLLAMA };

    /// JSON Schema as Gemini takes it (`responseJsonSchema`).
    ///
    /// Maps are arrays of `{"key", "value"}`, any value at all is JSON in a string. Lengths and patterns of strings, and bounds
    /// that a number must not reach, stand in descriptions and are left to the validator.
    pub const GEMINI: Self = Self { profile: &GEMINI };

    /// The subset of OpenAPI's schemas that Gemini takes as `responseSchema`.
    ///
    /// As [`GEMINI`](Self::GEMINI), and: definitions are written where they are used, a schema inside of itself is JSON in a
    /// string, and so are objects and arrays below the fifth level. Listed values are strings, which hold JSON where others
    /// than strings are listed; tuples are objects.
    pub const GEMINI_OPENAPI: Self = Self { profile: &GEMINI_OPENAPI };

    /// Returns the dialect that a row of data describes; see [`profile`](crate::profile) for an example.
    pub const fn new(profile: &'static Profile) -> Self {
        Self { profile }
    }
}

impl Dialect for Native {
    fn about(&self) -> &str {
        self.profile.about
    }

    fn lint(&self, schema: &Value) -> Vec<LintFinding> {
        findings(self.profile, schema)
    }
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Native({})", self.profile.name)
    }
}

impl Lower for Native {
    fn name(&self) -> &str {
        self.profile.name
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::Schema
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let profile = self.profile;
        let Expanded { mut forms, mut losses } = expand(request.schema, profile.name)?;
        // The shape of an object depends on whether it has other members, so closing comes before reshaping.
        if request.tighten != Tighten::None {
            close(&mut forms, &mut losses);
        }
        // Bounds on lengths that are not sent would only be losses.
        let is_bounded = request.tighten == Tighten::Bounded && profile.lengths.of_lists();
        let mut forms =
            reshape(&mut forms, profile, &Order::new(request.dependencies), is_bounded, &mut losses);
        if is_bounded {
            bound(&mut forms, &profile.token_budget, request.max_tokens, &mut losses);
        }
        let written = match &profile.limits {
            None => write(&forms, profile, usize::MAX, true),
            Some(limits) => within(limits, |most_values, noted| write(&forms, profile, most_values, noted))
                .map_err(|message| Refused::new(profile.name, message))?,
        };
        losses.extend(written.losses);
        Ok(Lowered::new(self.enforcement(), written.schema)
            .with_dialect(profile.name)
            .with_shown(profile.shown.then(|| SchemaText::Outline(outline(&forms, forms.root))))
            .with_lift(written.lift)
            .with_bounds(written.bounds)
            .with_losses(reported(losses)))
    }
}

/// From how many values on a list is left out, one after the other, until the rest is small enough.
const MOST_VALUES: [usize; 8] = [usize::MAX, 500, 250, 100, 50, 20, 5, 1];

fn within(limits: &Limits, write: impl Fn(usize, bool) -> Written) -> Result<Written, String> {
    let mut over = None;
    for most_values in MOST_VALUES {
        let mut written = write(most_values, true);
        let mut size = Size::of(&written.schema);
        if size.unions > limits.unions {
            written = write(most_values, false);
            size = Size::of(&written.schema);
        }
        match size.over(limits) {
            None => return Ok(written),
            Some(what) => over = Some(what),
        }
    }
    let (what, size, most) = over.unwrap_or_default();
    Err(format!("it comes to {size} {what}, and {most} are taken: split it, or ask for its parts one by one"))
}
