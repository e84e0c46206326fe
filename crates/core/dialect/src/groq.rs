//! The dialect of Groq's structured outputs.
//!
//! Sources: the vendor's page on structured outputs (2026-11): all members required, objects closed, as OpenAI has it. The page names
//! no keyword for bounds, lengths, patterns or formats, so none is sent. No probe was run against the vendor.

use crate::azure;
use crate::profile::{OPENAI, Profile};

/// Groq's structured outputs: `strict = true` for the gpt-oss models, the same shape for the others.
pub(crate) const GROQ: Profile =
    Profile { name: "groq", about: "structured outputs of Groq", limits: OPENAI.limits, ..azure::AZURE };
