//! A tree of cgroups for an example, which leaves nothing behind, whether it succeeds or fails.

use std::error::Error;
use std::time::Duration;

use cosched_linux::{Layout, Place, Tree};

/// Calls `work` with a tree of its own; then kills its jobs and removes it.
pub(crate) fn in_scratch_tree(work: impl FnOnce(&Tree) -> Result<(), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let tree = Tree::open(&Layout::detect()?, Place::Root { name: format!("cst-{}", std::process::id()) })?;
    // Other work on the machine should not be measured.
    tree.set_reserve(0.005)?;
    let outcome = work(&tree);
    for id in tree.jobs()? {
        tree.open_job(id)?.kill()?;
    }
    std::thread::sleep(Duration::from_millis(100));
    tree.remove()?;
    outcome
}
