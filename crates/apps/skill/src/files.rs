//! The files of skills.

use std::fs;
use std::path::{Path, PathBuf};

use crate::SkillError;

/// Reads a file of a skill.
pub(crate) fn read(path: &Path) -> Result<String, SkillError> {
    fs::read_to_string(path)
        .map_err(|error| SkillError::File { path: path.display().to_string(), reason: error.to_string() })
}

/// Returns the YAML and TOML files of a folder, sorted.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, SkillError> {
    let failed = |error: std::io::Error| SkillError::File {
        path: folder.display().to_string(),
        reason: error.to_string(),
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_file() && matches!(extension, Some("yaml" | "yml" | "toml")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
