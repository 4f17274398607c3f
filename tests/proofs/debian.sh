# Sourced by the proofs that run in an empty Debian. They need root.

# need_root PROOF: exits unless root runs the proof.
need_root() {
  if [[ $EUID -ne 0 ]]; then
    echo "prove $1: an empty Debian is made by debootstrap and entered by chroot, which only root may do" >&2
    exit 2
  fi
}

# empty_debian SUITE FOLDER: makes an empty Debian of this suite, such as "bookworm", in the folder, unless there is one
# already. Uses debootstrap.
empty_debian() {
  if [[ -x $2/usr/bin/apt-get && ! -e $2/debootstrap ]]; then return; fi
  echo "Making an empty Debian ($1)."
  need_packages debootstrap
  rm -rf "$2" && mkdir -p "$2"
  # The mirror that this machine has for this Debian, if any; else debootstrap's own.
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' "Codename: $1" | sort -u | head -n 1)
  debootstrap --variant=minbase "$1" "$2" ${mirror:+"$mirror"} >"$2.log" 2>&1 || { tail "$2.log" >&2; exit 2; }
}

# copy_debian FROM TO: copies a Debian, to install packages in the copy.
copy_debian() {
  rm -rf "$2"
  mkdir -p "$(dirname "$2")"
  cp -a --reflink=auto "$1" "$2"
}

# in_debian FOLDER COMMAND...: runs the command there as root, with no variables of this shell but the proxies.
in_debian() {
  chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "${@:2}"
}

# copy_sources FROM TO: copies the files of a repository, without build results.
copy_sources() {
  mkdir -p "$2"
  (cd "$1" && git ls-files -z --cached --others --exclude-standard | tar --null -c -T - | tar -x -C "$2")
}
