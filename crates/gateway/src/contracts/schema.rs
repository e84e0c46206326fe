//! The schemas of requests, each read once.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use formwork_core::{Absent, Coerce};
use hashlink::LruCache;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A JSON Schema. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Schema(Arc<Inner>);

#[derive(Default)]
struct Inner {
    value: Value,
    /// The length and the digest of the schema as JSON, computed at their first use.
    written: OnceLock<(usize, [u8; 32])>,
    /// The description that was added last, and the schema with it: tools come with the same one in every request.
    described: Mutex<Option<(Box<str>, Schema)>>,
}

impl Schema {
    pub(crate) fn value(&self) -> &Value {
        &self.0.value
    }

    /// Adds a description, unless it is empty or the schema has one of its own.
    pub(crate) fn with_description(self, description: &str) -> Self {
        match self.value() {
            Value::Object(members) if !description.is_empty() && !members.contains_key("description") => {
                let mut described = self.0.described.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((_, known)) = described.as_ref().filter(|(known, _)| **known == *description) {
                    return known.clone();
                }
                let mut members = members.clone();
                members.insert("description".to_owned(), description.into());
                let schema = Self::from(Value::Object(members));
                *described = Some((description.into(), schema.clone()));
                schema
            }
            _ => self,
        }
    }

    /// Marks members that a text may lack, and what is done with values that do not fit; see [`Absent`] and [`Coerce`].
    pub(crate) fn with_marks(&self, absent: Option<&Absent>, coerce: Option<&Coerce>) -> Self {
        let mut value = self.value().clone();
        absent.iter().for_each(|absent| absent.declare(&mut value));
        coerce.iter().for_each(|coerce| coerce.declare(&mut value));
        value.into()
    }

    /// Returns the number of bytes of the schema as JSON.
    pub(crate) fn length(&self) -> usize {
        self.written().0
    }

    /// Returns the digest of the schema as JSON. Schemas that differ only in white space and escapes have the same digest.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.written().1
    }

    fn written(&self) -> &(usize, [u8; 32]) {
        self.0.written.get_or_init(|| {
            // Writing JSON to memory does not fail.
            let text = serde_json::to_vec(&self.0.value).unwrap_or_default();
            (text.len(), Sha256::digest(&text).into())
        })
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        Self(Arc::new(Inner { value, ..Inner::default() }))
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.value() == other.value()
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value().fmt(f)
    }
}

/// Schemas by their exact texts in requests, so that a text that was seen before is not parsed again. The least recently used
/// ones are removed first.
#[derive(Debug)]
pub(crate) struct Known {
    entries: Mutex<Entries>,
    max: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct Entries {
    by_text: LruCache<Box<str>, Schema>,
    /// The length of all texts together.
    bytes: usize,
}

/// The maximum length of all known texts together in bytes.
const MAX_BYTES: usize = 4 << 20;

impl Known {
    /// Creates an empty store of at most `max` schemas, and at most 4 MiB of text.
    pub(crate) fn new(max: usize) -> Self {
        // The bound is here, because the cache would remove a text without its bytes.
        let entries = Mutex::new(Entries { by_text: LruCache::new_unbounded(), bytes: 0 });
        Self { entries, max: max.max(1), max_bytes: MAX_BYTES }
    }

    /// Returns the schema that is written as `text`, which is parsed if it is not known.
    ///
    /// # Errors
    /// The error of the parser.
    pub(crate) fn read(&self, text: &str) -> Result<Schema, serde_json::Error> {
        if let Some(known) = self.entries().by_text.get(text) {
            return Ok(known.clone());
        }
        let schema = Schema::from(serde_json::from_str::<Value>(text)?);
        if text.len() > self.max_bytes {
            return Ok(schema);
        }
        let mut entries = self.entries();
        while entries.by_text.len() >= self.max || entries.bytes + text.len() > self.max_bytes {
            let Some((oldest, _)) = entries.by_text.remove_lru() else { break };
            entries.bytes -= oldest.len();
        }
        if entries.by_text.insert(text.into(), schema.clone()).is_none() {
            entries.bytes += text.len();
        }
        Ok(schema)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        /// Returns the schema that a text says, after any other reads, and however little room there is.
        #[test]
        fn a_text_is_always_read_as_what_it_says(
            reads in prop::collection::vec((0_u32..12, 0_usize..4), 1..60),
            max in 1_usize..6,
            max_bytes in 1_usize..400,
        ) {
            let known = Known { max, max_bytes, ..Known::new(1) };
            for (number, spaces) in reads {
                let schema = json!({"type": "object", "description": "x".repeat(number as usize), "minProperties": number});
                let text = schema.to_string().replace(':', &format!(":{}", " ".repeat(spaces)));
                let read = known.read(&text).unwrap();
                prop_assert_eq!(read.value(), &schema);
                // Two spellings are the same contract.
                let own = Schema::from(schema.clone());
                prop_assert_eq!(read.digest(), own.digest());
                prop_assert_eq!(read.length(), schema.to_string().len());
                prop_assert_eq!(&known.read(&text).unwrap(), &read);
                let entries = known.entries.lock().unwrap();
                prop_assert!(entries.by_text.len() <= max);
                prop_assert!(entries.bytes <= max_bytes);
                prop_assert_eq!(entries.bytes, entries.by_text.iter().map(|(text, _)| text.len()).sum::<usize>());
            }
        }
    }

    #[test]
    fn a_description_is_added_once_and_never_mistaken_for_another() {
        let known = Known::new(4);
        let read = |text| known.read(text).unwrap();
        let text = r#"{"type": "object"}"#;
        let described = read(text).with_description("a person");
        assert_eq!(described.value(), &json!({"type": "object", "description": "a person"}));
        assert!(Arc::ptr_eq(&read(text).with_description("a person").0, &described.0));
        for description in ["a place", "a person", "a place"] {
            let described = read(text).with_description(description);
            assert_eq!(described.value(), &json!({"type": "object", "description": description}));
        }
        assert_eq!(read(text).with_description(""), read(text));
        let own = r#"{"type": "object", "description": "its own"}"#;
        assert_eq!(read(own).with_description("a person"), read(own));
    }

    #[test]
    fn a_text_that_is_no_json_is_an_error_each_time() {
        let known = Known::new(4);
        assert!(known.read("{\"type\": }").is_err());
        assert!(known.read("{\"type\": }").is_err());
    }
}
