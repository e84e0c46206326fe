//! `cargo xtask tidy --sample N SEED`: prints random public items of the libraries with their documentation, for a review of the
//! documentation from a newcomer's view.

use std::collections::BTreeSet;

/// A public item: its place, its documentation, its first line, and whether its documentation page has an example.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    place: String,
    documented: Vec<String>,
    signature: String,
    /// The crate and the type or trait whose page has this item: `crates/core/json JsonPath`. A free function has its own page.
    page: String,
    pub(super) example: bool,
}

/// Returns the public items of the libraries' source files, without fields, variants and re-exports. An item has an example if its
/// documentation or the page of its type has one, because rustdoc shows both on the same page.
pub(super) fn items<'t>(sources: impl IntoIterator<Item = (&'t str, &'t str)>) -> Vec<Item> {
    let mut found: Vec<Item> = sources.into_iter().flat_map(|(name, text)| in_file(name, text)).collect();
    let pages: BTreeSet<String> =
        found.iter().filter(|item| item.example).map(|item| item.page.clone()).collect();
    for item in &mut found {
        item.example = pages.contains(&item.page);
    }
    found
}

fn in_file(name: &str, text: &str) -> Vec<Item> {
    const KINDS: [&str; 8] =
        ["fn ", "const fn ", "async fn ", "struct ", "enum ", "trait ", "type ", "const "];
    let Some((library, _)) = name.split_once("/src/").filter(|(library, _)| library.starts_with("crates/"))
    else {
        return Vec::new();
    };
    let mut items = Vec::new();
    let mut documented: Vec<String> = Vec::new();
    let (mut owner, mut in_attribute) = (String::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("impl") {
            owner = implemented(line);
        } else if line.starts_with('}') {
            owner.clear();
        }
        let line = line.trim();
        if in_attribute || line.starts_with("#[") {
            in_attribute = !line.ends_with(']');
        } else if let Some(text) = line.strip_prefix("///") {
            documented.push(text.to_owned());
        } else {
            let documented = std::mem::take(&mut documented);
            let item =
                line.strip_prefix("pub ").filter(|rest| KINDS.iter().any(|kind| rest.starts_with(kind)));
            items.extend(item.map(|rest| Item {
                place: format!("{name}:{number}"),
                example: documented.iter().any(|line| line.trim_start().starts_with("```")),
                documented,
                signature: line.trim_end_matches(['{', ' ']).to_owned(),
                page: format!("{library} {}", if owner.is_empty() { named(rest) } else { &owner }),
            }));
        }
    }
    items
}

/// Returns the name that an item declares: `Body` for `struct Body<'a>(...)`.
fn named(item: &str) -> &str {
    let name = item.trim_start_matches("const ").trim_start_matches("async ");
    let name = name.split_once(' ').map_or(name, |(_, name)| name);
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Returns the name of the type that an `impl` block is for: `Extractor` for `impl<T> Extractor<T> {`.
fn implemented(line: &str) -> String {
    let mut depth = 0_i32;
    let after: String = line
        .trim_start_matches("impl")
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '<') - i32::from(*c == '>');
            depth == 0 && *c != '>'
        })
        .collect();
    let of = after.split_once(" for ").map_or(after.as_str(), |(_, of)| of);
    let path = of.split(['{', ' ']).find(|word| !word.is_empty()).unwrap_or_default();
    path.rsplit("::").next().unwrap_or_default().to_owned()
}

/// Returns `count` random items. The same seed returns the same items.
pub(super) fn draw(mut items: Vec<Item>, count: usize, seed: u64) -> Vec<Item> {
    let mut state = seed;
    for chosen in 0..count.min(items.len()) {
        let left = items.len() - chosen;
        items.swap(chosen, chosen + (next(&mut state) % left as u64) as usize);
    }
    items.truncate(count);
    items
}

/// Returns the next number of SplitMix64 (Steele, Lea and Flood, 2014).
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
        writeln!(f, "    {}", self.signature)?;
        writeln!(f, "    ({})", if self.example { "an example on its page" } else { "no example" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "/// Reads.\n///\n/// # Errors\n/// Never.\n#[must_use]\npub fn read() -> u8 {\n    7\n}\n\nstruct Own;\n\nimpl A {\n    /// Sets it.\n    pub const fn with_it(self) -> Self {\n    }\n}\n";

    #[test]
    fn an_item_has_its_documentation() {
        let found = items([("crates/a/src/lib.rs", TEXT)]);
        let read = "crates/a/src/lib.rs:6\n    Reads.\n   \n    # Errors\n    Never.\n    pub fn read() -> u8\n    (no example)\n";
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>()[0], read);
        assert_eq!((found.len(), found[1].signature.as_str()), (2, "pub const fn with_it(self) -> Self"));
        assert_eq!(items([("crates/a/tests/it/main.rs", TEXT)]), []);
    }

    #[test]
    fn attributes_of_several_lines_do_not_part_an_item_from_its_documentation() {
        let text = "/// One of two.\n#[derive(\n    Debug,\n    Clone,\n)]\npub enum Way {\n";
        assert_eq!(items([("crates/a/src/way.rs", text)])[0].documented, [" One of two."]);
    }

    #[test]
    fn the_example_of_a_type_is_on_the_page_of_its_methods_in_every_file_of_the_crate() {
        let with_example =
            "/// A.\n///\n/// ```\n/// let a = A;\n/// ```\npub struct A<T>(T);\n\npub struct B;\n";
        let elsewhere = "impl<T: Into<u8>> super::A<T> {\n    pub fn a(&self) {}\n}\nimpl From<A<u8>> for B {\n    pub const NEW: u8 = 1;\n}\npub const fn free() {}\n";
        let found = items([
            ("crates/a/src/lib.rs", with_example),
            ("crates/a/src/more.rs", elsewhere),
            ("crates/b/src/more.rs", elsewhere),
        ]);
        let examples: Vec<(&str, bool)> =
            found.iter().map(|item| (item.page.as_str(), item.example)).collect();
        let expected = [
            ("crates/a A", true),
            ("crates/a B", false),
            ("crates/a A", true),
            ("crates/a B", false),
            ("crates/a free", false),
            ("crates/b A", false),
            ("crates/b B", false),
            ("crates/b free", false),
        ];
        assert_eq!(examples, expected);
    }

    #[test]
    fn the_same_seed_draws_the_same_items_and_another_one_others() {
        let many = || {
            let source: String = (0..100).map(|at| format!("pub struct S{at};\n")).collect();
            items([("crates/a/src/lib.rs", source.as_str())])
        };
        let drawn = |seed| draw(many(), 10, seed);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        let mut places: Vec<String> = drawn(3).into_iter().map(|item| item.place).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!((places.len(), draw(many(), 200, 1).len()), (10, 100));
    }
}
