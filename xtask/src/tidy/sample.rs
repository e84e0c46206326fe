//! `cargo xtask tidy --sample N SEED`: public items of the libraries with their documentation, drawn at random, to be read as a
//! newcomer reads them.

/// A public item: where it stands, its documentation, and its first lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    place: String,
    documented: Vec<String>,
    signature: String,
}

/// The public items of a library's source file; fields, variants and re-exports aside.
pub(super) fn items(name: &str, text: &str) -> Vec<Item> {
    const KINDS: [&str; 8] =
        ["fn ", "const fn ", "async fn ", "struct ", "enum ", "trait ", "type ", "const "];
    if !name.starts_with("crates/") || !name.contains("/src/") {
        return Vec::new();
    }
    let mut items = Vec::new();
    let mut documented: Vec<String> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(said) = line.strip_prefix("///") {
            documented.push(said.to_owned());
        } else if !line.starts_with("#[") {
            let documented = std::mem::take(&mut documented);
            let item =
                line.strip_prefix("pub ").filter(|rest| KINDS.iter().any(|kind| rest.starts_with(kind)));
            items.extend(item.map(|_| Item {
                place: format!("{name}:{number}"),
                documented,
                signature: line.trim_end_matches(['{', ' ']).to_owned(),
            }));
        }
    }
    items
}

/// Draws `count` of the items; the same seed draws the same ones.
pub(super) fn draw(mut items: Vec<Item>, count: usize, seed: u64) -> Vec<Item> {
    let mut state = seed;
    for chosen in 0..count.min(items.len()) {
        let left = items.len() - chosen;
        items.swap(chosen, chosen + (next(&mut state) % left as u64) as usize);
    }
    items.truncate(count);
    items
}

/// The next number of SplitMix64 (Steele, Lea and Flood, 2014).
const fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.place)?;
        for line in &self.documented {
            writeln!(f, "   {line}")?;
        }
        writeln!(f, "    {}", self.signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "/// Reads.\n///\n/// # Errors\n/// Never.\n#[must_use]\npub fn read() -> u8 {\n    7\n}\n\nstruct Own;\n\nimpl A {\n    /// Sets it.\n    pub const fn with_it(self) -> Self {\n";

    #[test]
    fn an_item_has_its_documentation() {
        let found = items("crates/a/src/lib.rs", TEXT);
        let read =
            "crates/a/src/lib.rs:6\n    Reads.\n   \n    # Errors\n    Never.\n    pub fn read() -> u8\n";
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>()[0], read);
        assert_eq!((found.len(), found[1].signature.as_str()), (2, "pub const fn with_it(self) -> Self"));
        assert_eq!(items("crates/a/tests/it/main.rs", TEXT), []);
    }

    #[test]
    fn the_same_seed_draws_the_same_items_and_another_one_others() {
        let many = || {
            (0..100).map(|at| Item { place: at.to_string(), documented: vec![], signature: String::new() })
        };
        let drawn = |seed| draw(many().collect(), 10, seed);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        let mut places: Vec<String> = drawn(3).into_iter().map(|item| item.place).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!((places.len(), draw(many().collect(), 200, 1).len()), (10, 100));
    }
}
