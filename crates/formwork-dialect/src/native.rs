use std::fmt;

use formwork_core::{Enforcement, Lower, LowerRequest, Lowered, Refused, Shown};

use crate::caps::Caps;
use crate::expand::{Expanded, expand, losses};
use crate::limits::Size;
use crate::order::Order;
use crate::outline::outline;
use crate::profile::{LLAMA_CPP, LLGUIDANCE, Limits, OLLAMA, OPENAI, Profile};
use crate::reshape::reshape;
use crate::write::{Written, write};

/// The dialect of a provider that keeps a model to a schema.
///
/// What is sent is closed and bounded: objects have no members that the schema does not name, strings (where the dialect
/// has lengths) and arrays have a length that fits into the tokens of the answer. A model that may go on does go on; what
/// bounds it is the schema. What a dialect cannot say is said in another shape that [`lift`](formwork_core::lift) maps
/// back, or left to the validator, with a loss.
///
/// ```
/// use formwork_core::{Lower, LowerRequest};
/// use formwork_dialect::Native;
///
/// let schema = serde_json::json!({"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": true}}});
/// let lowered = Native::LLGUIDANCE.lower(&LowerRequest::new(&schema))?;
/// let sent = lowered.schema.unwrap();
/// assert_eq!(sent["additionalProperties"], false);
/// assert_eq!(sent["properties"]["tags"]["maxItems"], 6);
/// assert!(lowered.losses.iter().any(|loss| loss.keyword == "uniqueItems"));
/// # Ok::<(), formwork_core::Refused>(())
/// ```
#[derive(Clone, Copy)]
pub struct Native {
    profile: &'static Profile,
}

impl Native {
    /// The `llguidance` crate (1.9), in process, in vLLM and in SGLang. The model reads an outline of the schema.
    pub const LLGUIDANCE: Self = Self { profile: &LLGUIDANCE };

    /// OpenAI's strict mode (`response_format`, `text.format`, strict tools), and Azure's.
    ///
    /// Every member is required; what is optional may be `null`, and a `null` is dropped again. Maps are arrays of
    /// `{"key", "value"}`, tuples are objects, any value is JSON in a string, a root that is no object is wrapped in
    /// `{"value": …}`. The provider shows the schema to the model, so descriptions are sent, with what is not enforced in
    /// words. What is nested more than 10 levels deep becomes JSON in a string; where more than 1,000 values are listed,
    /// the longest lists are left to the validator.
    pub const OPENAI: Self = Self { profile: &OPENAI };

    /// llama.cpp's server (b11434), not built with llguidance. The model reads an outline of the schema.
    ///
    /// Members that are required come first. Bounds on numbers that are no integers, `multipleOf` and formats other than
    /// dates, times and UUIDs are left to the validator. Patterns are rewritten to what its converter understands, from `^`
    /// to `$`; a pattern that it would misread, or die of, is never sent.
    pub const LLAMA_CPP: Self = Self { profile: &LLAMA_CPP };

    /// Ollama, which hands schemas to llama.cpp.
    ///
    /// For some models it sorts the keys of the schema first, and keys are generated in that order. Where a declared
    /// [dependency](formwork_core::Dependency) would be broken by that, and only there, the names of the object's members
    /// get a letter in front (`a_parts`, `b_score`), which is taken off again. It costs nothing where keys are not sorted.
    pub const OLLAMA: Self = Self { profile: &OLLAMA };
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
        let Expanded { form, losses: mut receipts } = expand(request.schema, profile.name)?;
        let form = reshape(&form, profile, &Order::new(request.dependencies), &mut receipts);
        let caps = Caps::fitting(&form, &profile.room, request.max_tokens);
        let written = match &profile.limits {
            None => write(&form, profile, caps, usize::MAX),
            Some(limits) => {
                within(limits, |most_values| write(&form, profile, caps, most_values)).map_err(|message| {
                    Refused { dialect: profile.name.to_owned(), pointer: String::new(), message }
                })?
            }
        };
        receipts.extend(written.losses);
        Ok(Lowered {
            schema: Some(written.schema),
            enforcement: self.enforcement(),
            shown: profile.shown.then(|| Shown::Outline(outline(&form))),
            lift: written.lift,
            losses: losses(receipts),
        })
    }
}

/// From how many values on a list is left out, one after the other, until the rest is small enough.
const MOST_VALUES: [usize; 8] = [usize::MAX, 500, 250, 100, 50, 20, 5, 1];

fn within(limits: &Limits, write: impl Fn(usize) -> Written) -> Result<Written, String> {
    let mut over = None;
    for most_values in MOST_VALUES {
        let written = write(most_values);
        match Size::of(&written.schema).over(limits) {
            None => return Ok(written),
            Some(what) => over = Some(what),
        }
    }
    let (what, size, most) = over.unwrap_or_default();
    Err(format!("it comes to {size} {what}, and {most} are taken: split it, or ask for its parts one by one"))
}
