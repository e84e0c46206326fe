use std::fmt;

use formwork_core::{Enforcement, LintFinding, Lower, LowerRequest, Lowered, Refused, SchemaText, Tighten};
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
use crate::outline::{MAX_OUTLINE, outline};
use crate::profile::{LLAMA_CPP, LLGUIDANCE, Limits, OLLAMA, OPENAI, Profile};
use crate::reshape::reshape;
use crate::tighten::{bound, close};
use crate::write::{Written, write};
use crate::xai::XAI;
use crate::xgrammar::XGRAMMAR;
use crate::{Dialect, Reaction};

/// The dialect of a provider that enforces a schema.
///
/// A keyword that the dialect lacks is either expressed in another shape, which [`lift`](formwork_core::lift) maps
/// back, or left to validation and reported as a loss. No valid answer is excluded, with one exception: an object with
/// `properties` that does not decide about additional ones is closed, unless the request [disables
/// it](formwork_core::Tighten).
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
    /// The `llguidance` crate (1.9), in this process, in vLLM and in SGLang. The prompt contains an outline of the
    /// schema.
    pub const LLGUIDANCE: Self = Self { profile: &LLGUIDANCE };

    /// OpenAI's strict mode (`response_format`, `text.format`, strict tools).
    ///
    /// Every member is required. `null` means that an optional member is absent, or `{"absent": true}` if `null` is a
    /// value of it. Maps become arrays of `{"key", "value"}`, tuples become objects, and a root of another type is
    /// wrapped in `{"value": …}`. The provider adds the schema to the prompt, so annotations are sent, with unenforced
    /// constraints as text. Objects and arrays below 10 levels become JSON in a string. If more than 1,000 values are
    /// enumerated, validation alone checks the longest lists.
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
    /// Required members come first. Bounds of numbers, lengths, and complex patterns are sent as text and left to
    /// validation. Maps become arrays of `{"key", "value"}`, tuples become objects, and a root of another type is
    /// wrapped in `{"value": …}`. Unconstrained values, and the second nesting of a definition in itself, become JSON
    /// in a string, because the API accepts neither. A schema with more than 24 optional members or 16 unions is an
    /// error before the call.
    pub const ANTHROPIC: Self = Self { profile: &ANTHROPIC };

    /// llama.cpp's server (b11434), built without llguidance. The prompt contains an outline of the schema.
    ///
    /// Required members come first. Bounds of fractional numbers, `multipleOf`, and formats other than dates, times and
    /// UUIDs are left to validation. Patterns are rewritten to the syntax of its converter, from `^` to `$`. A pattern
    /// that it would misread or crash on is never sent.
    pub const LLAMA_CPP: Self = Self { profile: &LLAMA_CPP };

    /// Ollama, which passes schemas to llama.cpp.
    ///
    /// For some models Ollama sorts the keys of the schema, which is the order of generation. If, and only if, that
    /// would break a declared [dependency](formwork_core::Dependency), the names of the object's members get a letter
    /// as prefix (`a_parts`, `b_score`), which lifting removes. The prefix is harmless if keys are not sorted.
    pub const OLLAMA: Self = Self { profile: &OLLAMA };

    /// JSON Schema as Gemini accepts it (`responseJsonSchema`).
    ///
    /// Maps become arrays of `{"key", "value"}`, and unconstrained values become JSON in a string. Lengths and patterns
    /// of strings, and exclusive bounds of numbers, are sent as descriptions and left to validation.
    pub const GEMINI: Self = Self { profile: &GEMINI };

    /// The subset of OpenAPI's schemas that Gemini accepts as `responseSchema`.
    ///
    /// It is like [`GEMINI`](Self::GEMINI), with these differences: definitions are written at each place of use;
    /// recursion, and objects and arrays below the fifth level, become JSON in a string; enumerated values are strings,
    /// with JSON for values of other types; tuples become objects.
    pub const GEMINI_OPENAPI: Self = Self { profile: &GEMINI_OPENAPI };

    /// Creates the dialect of a profile; see [`profile`](crate::profile) for an example.
    pub const fn new(profile: &'static Profile) -> Self {
        Self { profile }
    }
}

impl Dialect for Native {
    fn about(&self) -> &str {
        self.profile.about
    }

    fn lint(&self, schema: &Value) -> Vec<LintFinding<Reaction>> {
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
        // The shape of an object depends on whether it has additional members, so objects are closed first.
        if request.tighten != Tighten::None {
            close(&mut forms, &mut losses);
        }
        // Bounds on lengths that are not sent would only be losses.
        let is_bounded = request.tighten == Tighten::Bounded && profile.lengths.of_lists();
        let on_one_line = request.tighten == Tighten::Bounded;
        let mut forms =
            reshape(&mut forms, profile, &Order::new(request.dependencies), is_bounded, &mut losses);
        if is_bounded {
            bound(&mut forms, profile, request, &mut losses);
        }
        let written = match &profile.limits {
            None => write(&forms, profile, usize::MAX, true),
            Some(limits) => within(limits, |most_values, noted| write(&forms, profile, most_values, noted))
                .map_err(|message| Refused::new(profile.name, message))?,
        };
        losses.extend(written.losses);
        Ok(Lowered::new(self.enforcement(), written.schema)
            .with_dialect(profile.name)
            .with_prompt_schema(
                profile
                    .describes_schema
                    .then(|| SchemaText::Outline(outline(&forms, forms.root, MAX_OUTLINE, on_one_line))),
            )
            .with_lift(written.lift)
            .with_bounds(written.bounds)
            .with_losses(reported(losses)))
    }
}

/// The lengths of lists that are left out, one after the other, until the rest is small enough.
const MOST_VALUES: [usize; 8] = [usize::MAX, 500, 250, 100, 50, 20, 5, 1];

fn within(limits: &Limits, write: impl Fn(usize, bool) -> Written) -> Result<Written, String> {
    let mut over = None;
    // The smallest form is tried second: most schemas that are too large are so without any list of values.
    let [all, between @ .., least] = MOST_VALUES;
    let mut smallest = None;
    for most_values in [all, least].into_iter().chain(between) {
        let mut written = write(most_values, true);
        let mut size = Size::of(&written.schema);
        if size.unions > limits.unions {
            written = write(most_values, false);
            size = Size::of(&written.schema);
        }
        match size.over(limits) {
            None if most_values == least => smallest = Some(written),
            None => return Ok(written),
            Some(what) => {
                over = Some(what);
                // Without lists of values the structure is the same.
                if most_values == least || size.structure_over(limits).is_some() {
                    break;
                }
            }
        }
    }
    if let Some(smallest) = smallest {
        return Ok(smallest);
    }
    let (what, size, most) = over.unwrap_or_default();
    Err(format!("it comes to {size} {what}, and {most} are taken: split it, or ask for its parts one by one"))
}
