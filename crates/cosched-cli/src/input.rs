//! Texts that commands read.

use crate::out::Failure;
use std::path::Path;
use std::{fs, io};

/// The text of a file.
pub(crate) fn read(path: &Path, hint: &str) -> Result<String, Failure> {
    fs::read_to_string(path)
        .map_err(|e| Failure::explained(1, &format!("cannot read {}", path.display()), &e.to_string(), hint))
}

/// The text of a file, or of standard input for `-`, and its name for messages.
pub(crate) fn read_or_stdin(path: &Path) -> Result<(String, String), Failure> {
    let (name, text) = match path.as_os_str() == "-" {
        true => ("standard input".to_owned(), io::read_to_string(io::stdin())),
        false => (path.display().to_string(), fs::read_to_string(path)),
    };
    match text {
        Ok(text) => Ok((name, text)),
        Err(e) => {
            let hint = "check the path and its permissions";
            Err(Failure::explained(1, &format!("{name} cannot be read"), &e.to_string(), hint))
        }
    }
}
