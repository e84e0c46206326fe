use std::fmt;
use std::marker::PhantomData;

use formwork_core::{JsonPath, Snapshot, Violation, decode};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The document of an answer that is still arriving, in the form of the contract. Open strings end where the text ends, and open arrays
/// and objects are closed.
///
/// Parts that have ended can be read as types of your own: `T` needs no optional members for this. The document is judged as far as
/// single bytes decide it: see [`violation`](Self::violation). Conversions that the contract permits are made when the answer has ended.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_extract::{Extractor, Update, block_on};
/// use formwork_testkit::{Reply, Scripted};
///
/// #[derive(schemars::JsonSchema, serde::Deserialize)]
/// struct Order {
///     customer: String,
///     sizes: Vec<u8>,
/// }
///
/// let answer = Reply::pieces([r#"{"customer": "Ada", "sizes": [40, 4"#, "1]}"]);
/// let extractor = Extractor::<Order>::builder().with_target(Arc::new(Scripted::new([answer]))).build()?;
/// let (mut updates, mut seen) = (extractor.stream("Ada: 40 and 41"), Vec::new());
/// block_on(async {
///     while let Some(update) = updates.next().await {
///         if let Update::Partial(partial) = update? {
///             let customer = partial.get::<String>(&"$.customer".parse()?);
///             let sizes = partial.items::<u8>(&"$.sizes".parse()?);
///             seen.push((customer, sizes, partial.complete().map(|order| order.sizes.len())));
///         }
///     }
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })??;
/// assert_eq!(seen[0], (Some("Ada".to_owned()), vec![40], None));
/// assert_eq!(seen[1], (Some("Ada".to_owned()), vec![40, 41], Some(2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Partial<T> {
    snapshot: Snapshot,
    of: PhantomData<fn() -> T>,
}

impl<T> Partial<T> {
    pub(crate) const fn new(snapshot: Snapshot) -> Self {
        Self { snapshot, of: PhantomData }
    }

    /// Returns the document so far.
    pub const fn value(&self) -> &Value {
        self.snapshot.value()
    }

    /// Returns the value at a path as a `U`; `None` if there is none, if it has not ended, or if it does not deserialise as a `U`.
    pub fn get<U: DeserializeOwned>(&self, path: &JsonPath) -> Option<U> {
        decode(self.snapshot.ended(path)?).ok()
    }

    /// Returns the items that have ended in the list at a path, up to the first that does not deserialise as a `U`; empty if there is
    /// no list.
    pub fn items<U: DeserializeOwned>(&self, path: &JsonPath) -> Vec<U> {
        let count = path.get(self.value()).and_then(Value::as_array).map_or(0, Vec::len);
        (0..count).map_while(|index| self.get(&path.index(index))).collect()
    }

    /// Returns the reason why the document cannot become valid, if that is decided already. A patch may correct it.
    pub fn violation(&self) -> Option<&Violation> {
        self.snapshot.violation()
    }
}

impl<T: DeserializeOwned> Partial<T> {
    /// Returns the document as a `T` once it has ended, unless it is wrong; `None` before. The rules of the contract are not
    /// judged yet: [`Update::Done`](crate::Update::Done) has the accepted value.
    pub fn complete(&self) -> Option<T> {
        if self.violation().is_some() {
            return None;
        }
        self.get(&JsonPath::root())
    }
}

impl<T> Clone for Partial<T> {
    fn clone(&self) -> Self {
        Self::new(self.snapshot.clone())
    }
}

impl<T> PartialEq for Partial<T> {
    fn eq(&self, other: &Self) -> bool {
        self.snapshot == other.snapshot
    }
}

impl<T> fmt::Debug for Partial<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Partial").field(self.value()).finish()
    }
}
