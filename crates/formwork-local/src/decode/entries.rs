use std::collections::HashMap;

/// From this length on an entry is taken for a text or an object that says something, and not for a mark of a scale.
const LONG: usize = 16;

/// How often a container may have the same long entry.
const SAME_LONG: u32 = 2;

/// How often in a row a container may have the same short entry: rows of zeros are common, endless ones are not.
const SAME_SHORT: u32 = 16;

/// How often in a row a container may have the same short text.
const SAME_TEXT: u32 = 4;

/// The containers that are open in a document, and what they hold so far: what it takes to notice that a list goes on
/// and on without saying anything new.
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
    /// Where in the text it begins.
    start: usize,
    /// Where in the text the entry begins that is being written.
    entry: usize,
    /// How often each long entry came.
    long: HashMap<Vec<u8>, u32>,
    /// The last short entry, and how often in a row it came.
    short: (Vec<u8>, u32),
    finished: usize,
    /// Takes no more entries.
    full: bool,
}

impl Entries {
    /// Takes in more of the document.
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

    /// The items before the one that is being written, if what is open is an array.
    pub(crate) fn items(&self) -> Option<usize> {
        self.open.last().filter(|container| container.is_array).map(|container| container.finished)
    }

    /// How many containers are open.
    pub(crate) const fn depth(&self) -> usize {
        self.open.len()
    }

    /// Says that what is open takes no more entries.
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

    /// Returns whether these bytes would end the innermost open container, before anything else that is structure.
    pub(crate) fn ends(&self, bytes: &[u8]) -> bool {
        let (mut in_string, mut escaped) = (self.in_string, self.escaped);
        let mut events = bytes.iter().map(|byte| step(&mut in_string, &mut escaped, *byte));
        events.find(|event| *event != Event::None) == Some(Event::Close)
    }

    /// Whether these bytes would go on with a container that should end.
    pub(crate) fn goes_on(&self, bytes: &[u8]) -> bool {
        let (mut in_string, mut escaped) = (self.in_string, self.escaped);
        // Containers that the bytes themselves open, and those of ours that they close.
        let (mut inner, mut closed) = (0usize, 0usize);
        for (at, byte) in bytes.iter().enumerate() {
            match step(&mut in_string, &mut escaped, *byte) {
                Event::Open => inner += 1,
                Event::Close if inner > 0 => inner -= 1,
                Event::Close => closed += 1,
                Event::Comma if inner == 0 => {
                    let container = self.open.len().checked_sub(closed + 1).and_then(|at| self.open.get(at));
                    // A comma within the bytes begins a new entry, and the rest of them is not looked at.
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
    /// Whether this entry came often enough that no other should follow it.
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

/// One byte of JSON outside of strings may open or close a container or end an entry.
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
        // In the middle of its last byte's token, and on the way out of an inner container.
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
