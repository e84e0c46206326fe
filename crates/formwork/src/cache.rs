use std::env;
use std::path::PathBuf;

/// Returns the folder for files that can be made again: `FORMWORK_CACHE`, else `formwork` in the user's cache folder, which is
/// below `XDG_CACHE_HOME` or `~/.cache` on Linux, `~/Library/Caches` on macOS and `LOCALAPPDATA` on Windows. The model in this
/// process keeps its weights there as well.
pub fn folder() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG specification ignores relative paths, which would depend on the current folder.
    let absolute = |name: &str| set(name).filter(|folder| folder.is_absolute());
    let home = |below: &str| absolute("HOME").map(|home| home.join(below));
    set("FORMWORK_CACHE").or_else(|| {
        let user = if cfg!(windows) {
            absolute("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            home("Library/Caches")
        } else {
            absolute("XDG_CACHE_HOME").or_else(|| home(".cache"))
        };
        Some(user?.join("formwork"))
    })
}

/// Returns the file with what calls showed about their targets: `FORMWORK_OBSERVATIONS`, else `observations.jsonl` in [`folder`].
/// An empty variable means no file, so that each process begins without evidence.
pub(crate) fn observations() -> Option<PathBuf> {
    match env::var_os("FORMWORK_OBSERVATIONS") {
        Some(file) => Some(PathBuf::from(file)).filter(|file| !file.as_os_str().is_empty()),
        None => Some(folder()?.join("observations.jsonl")),
    }
}
