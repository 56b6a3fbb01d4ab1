#!/usr/bin/env bash
# Tags a release of all modules in this clone, and pushes nothing:
#
#   scripts/release.sh v0.1.0
#
# The tag v0.1.0 of the library is on HEAD. Those of the other modules, such as server/v0.1.0, are on commits behind it, in
# which their go.mod files require the modules of that tag in place of the folders beside them. No branch has these commits,
# so the next change is built with the folders again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?usage: scripts/release.sh v0.1.0}
library=github.com/holdfast-dev/holdfast
others=(storage/shardlog/pglog server) # each requires those before it at most
tags=("$version" "${others[@]/%//$version}")

fail() {
  echo "release: $1" >&2
  exit 1
}

[[ $version =~ ^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$ ]] || fail "$version is no version such as v0.1.0"
[ -z "$(git status --porcelain)" ] || fail "the work tree has changes: commit or remove them"
for tag in "${tags[@]}"; do
  ! git rev-parse -q --verify "refs/tags/$tag" >/dev/null || fail "there is a tag $tag"
done

temporary=$(mktemp -d)
cleanup() {
  status=$?
  [ $status = 0 ] || git tag -d "${tags[@]}" >/dev/null 2>&1 || true # none was there before
  git worktree remove --force "$temporary/others" 2>/dev/null || true
  chmod -R u+w "$temporary"
  rm -rf "$temporary"
}
trap cleanup EXIT

git tag "$version"
git worktree add -q --detach "$temporary/others" "$version"

# The go command reads the modules of the new tags from this clone, for their sums, and all else from where it always does.
# What it reads of the clone is kept in no cache of the user, because nobody has seen the tags yet.
repository=$(git rev-parse --path-format=absolute --git-common-dir)

# required makes the module in this directory require one of ours at the version, in place of its folder.
required() {
  go mod edit -dropreplace "$1" -require "$1@$version"
}

for module in "${others[@]}"; do
  (
    cd "$temporary/others/$module"
    proxy="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
    export GOWORK=off GOFLAGS=-mod=mod GOPRIVATE="$library" GOPROXY="$proxy" GOMODCACHE="$temporary/modules"
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$repository.insteadOf" GIT_CONFIG_VALUE_0="https://$library"
    required "$library"
    for other in "${others[@]}"; do
      ! grep -q "^replace $library/$other =>" go.mod || required "$library/$other"
    done
    go mod tidy
  )
  git -C "$temporary/others" commit -qam "release: $module requires the modules of $version"
  git tag "$module/$version" "$(git -C "$temporary/others" rev-parse HEAD)"
done
echo "tagged ${tags[*]}; publish them with: git push origin ${tags[*]}"
