//! `cosched profile`, and the files of profiles (`cosched_study::profile` documents their contents).

mod command;
mod files;
mod show;

pub(crate) use command::{ProfileCommand, profile};
pub(crate) use files::{rank_files, read};
pub(crate) use show::summary;
