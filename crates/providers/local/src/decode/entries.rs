use std::collections::HashMap;

/// The minimum length of an entry that counts as a text or an object with content, not as a mark of a scale.
const LONG: usize = 16;

/// The maximum number of equal long entries of a container.
const SAME_LONG: u32 = 2;

/// The maximum number of equal short entries in a row: rows of zeros are common, endless ones are not.
const SAME_SHORT: u32 = 16;

/// The maximum number of equal short strings in a row.
const SAME_TEXT: u32 = 4;

/// The open containers of a document and their entries so far, to detect a list that repeats itself.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    text: Vec<u8>,
    open: Vec<Container>,
    in_string: bool,
    escaped: bool,
}

#[derive(Debug)]
struct Container {
    is_array: bool,
    /// The start of the container in the text.
    start: usize,
    /// The start of the current entry in the text.
    entry: usize,
    /// The number of occurrences of each long entry.
    long: HashMap<Vec<u8>, u32>,
    /// The last short entry, and its number of occurrences in a row.
    short: (Vec<u8>, u32),
    finished: usize,
    /// Whether the container must not get more entries.
    full: bool,
}

impl Entries {
    /// Reads more of the document.
    pub(crate) fn advance(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let event = step(&mut self.in_string, &mut self.escaped, *byte);
            match event {
                Event::Comma => self.finish_entry(),
                Event::Close => drop(self.open.pop()),
                Event::Open | Event::None => {}
            }
            self.text.push(*byte);
            let entry = self.text.len();
            match event {
                Event::Open => self.open.push(Container {
                    is_array: *byte == b'[',
                    start: entry - 1,
                    entry,
                    long: HashMap::new(),
                    short: (Vec::new(), 0),
                    finished: 0,
                    full: false,
                }),
                Event::Comma => {
                    if let Some(container) = self.open.last_mut() {
                        container.entry = entry;
                    }
                }
                Event::Close | Event::None => {}
            }
        }
    }

    /// Returns the number of complete items if the innermost open container is an array.
    pub(crate) fn items(&self) -> Option<usize> {
        self.open.last().filter(|container| container.is_array).map(|container| container.finished)
    }

    /// Returns the number of open containers.
    pub(crate) const fn depth(&self) -> usize {
        self.open.len()
    }

    /// Marks the innermost open container as full.
    pub(crate) fn fill(&mut self) {
        if let Some(container) = self.open.last_mut() {
            container.full = true;
        }
    }

    /// Returns the text of the innermost open container so far.
    pub(crate) fn container(&self) -> &[u8] {
        let start = self.open.last().map_or(self.text.len(), |container| container.start);
        self.text.get(start..).unwrap_or_default()
    }

    /// Returns whether these bytes close the innermost open container before any other structure.
    pub(crate) fn ends(&self, bytes: &[u8]) -> bool {
        let (mut in_string, mut escaped) = (self.in_string, self.escaped);
        let mut events = bytes.iter().map(|byte| step(&mut in_string, &mut escaped, *byte));
        events.find(|event| *event != Event::None) == Some(Event::Close)
    }

    /// Returns whether these bytes continue a container that is full.
    pub(crate) fn goes_on(&self, bytes: &[u8]) -> bool {
        let (mut in_string, mut escaped) = (self.in_string, self.escaped);
        // The containers that the bytes open, and the outer ones that they close.
        let (mut inner, mut closed) = (0usize, 0usize);
        for (at, byte) in bytes.iter().enumerate() {
            match step(&mut in_string, &mut escaped, *byte) {
                Event::Open => inner += 1,
                Event::Close if inner > 0 => inner -= 1,
                Event::Close => closed += 1,
                Event::Comma if inner == 0 => {
                    let container = self.open.len().checked_sub(closed + 1).and_then(|at| self.open.get(at));
                    // A comma starts a new entry, so the rest of the bytes is irrelevant.
                    return container.is_some_and(|container| {
                        let entry =
                            [self.text.get(container.entry..).unwrap_or_default(), &bytes[..at]].concat();
                        container.full || container.is_stale(entry.trim_ascii())
                    });
                }
                Event::Comma | Event::None => {}
            }
        }
        false
    }

    fn finish_entry(&mut self) {
        let Some(container) = self.open.last_mut() else { return };
        let entry = self.text.get(container.entry..).unwrap_or_default().trim_ascii();
        container.finished += 1;
        if entry.len() >= LONG {
            *container.long.entry(entry.to_vec()).or_default() += 1;
            container.short.1 = 0;
        } else if container.short.0 == entry {
            container.short.1 += 1;
        } else {
            container.short = (entry.to_vec(), 1);
        }
    }
}

impl Container {
    /// Returns whether the container should end after this entry.
    fn is_stale(&self, entry: &[u8]) -> bool {
        if entry.len() >= LONG {
            self.long.get(entry).is_some_and(|count| *count >= SAME_LONG)
        } else {
            let most = if entry.starts_with(b"\"") { SAME_TEXT } else { SAME_SHORT };
            self.short.0 == entry && self.short.1 >= most
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Open,
    Close,
    Comma,
    None,
}

/// Returns the effect of a byte: it can open or close a container, or end an entry.
fn step(in_string: &mut bool, escaped: &mut bool, byte: u8) -> Event {
    if *in_string {
        match byte {
            _ if *escaped => *escaped = false,
            b'\\' => *escaped = true,
            b'"' => *in_string = false,
            _ => {}
        }
        return Event::None;
    }
    match byte {
        b'"' => {
            *in_string = true;
            Event::None
        }
        b'{' | b'[' => Event::Open,
        b'}' | b']' => Event::Close,
        b',' => Event::Comma,
        _ => Event::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> Entries {
        let mut entries = Entries::default();
        entries.advance(text.as_bytes());
        entries
    }

    #[test]
    fn a_third_long_entry_that_says_the_same_is_the_last() {
        let entry = r#"{"title": "the same, again"}"#;
        let entries = after(&format!("[{entry}, {entry}, {entry}"));
        assert!(entries.goes_on(b", ") && !entries.goes_on(b"]"));
        assert!(!after(&format!("[{entry}, {entry}")).goes_on(b","));
        // In the middle of the token of its last byte, and when an inner container closes.
        let open = &entry[..entry.len() - 2];
        let entries = after(&format!("[{entry}, {entry}, {open}"));
        assert!(
            entries.goes_on(br#""}, {"#) && !entries.goes_on(br#""}]"#) && !entries.goes_on(br#" x"}, {"#)
        );
    }

    #[test]
    fn commas_in_strings_and_short_entries_are_free() {
        assert!(!after(r#"["a, a, a, a, a, a"#).goes_on(b", a"));
        let zeros = format!("[{}0", "0, ".repeat(9));
        assert!(!after(&zeros).goes_on(b","));
        let zeros = format!("[{}0", "0, ".repeat(16));
        assert!(after(&zeros).goes_on(b",") && !after(&zeros).goes_on(b"1,"));
        assert!(
            after(r#"["a", "a", "a", "a", "a""#).goes_on(b",") && !after(r#"["a", "a", "a""#).goes_on(b",")
        );
    }

    #[test]
    fn a_full_array_takes_no_more() {
        let mut entries = after(r#"{"a": [1, 2"#);
        assert_eq!(entries.items(), Some(1));
        entries.fill();
        assert!(entries.goes_on(b", 3") && !entries.goes_on(b"], ") && !entries.goes_on(b"3"));
        entries.advance(b"]");
        assert!(entries.items().is_none() && !entries.goes_on(b","));
    }
}
