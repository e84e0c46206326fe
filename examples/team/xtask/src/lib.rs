//! The chores of this repository.

use std::path::Path;

use formwork::golden::Folder;
use tickets::Ticket;

/// Lists the files of `schemas/`.
pub fn schemas() -> Folder {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    Folder::new(xtask.parent().unwrap_or(xtask).join("schemas"))
        .typed::<Ticket>("ticket")
        .lowered("ollama")
        .lowered("openai")
        .with_command("cargo xtask schema")
}

#[cfg(test)]
mod tests {
    #[test]
    fn schemas_are_what_the_types_say() -> Result<(), formwork::golden::Error> {
        super::schemas().check()
    }
}
