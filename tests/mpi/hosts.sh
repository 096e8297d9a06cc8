#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command whose mpirun finds three hosts: network namespaces with their own names, joined by a bridge.
# Usage, as root: tests/mpi/hosts.sh build/cpu/bin/kvs_mpi_test --gtest_filter='*SameBits*:*Kills*'
# mpirun reaches a host through this script, as it would through ssh: tests/mpi/hosts.sh HOST COMMAND...
set -euo pipefail

enter() {  # HOST SHELL_COMMAND
  # shellcheck disable=SC2016  # for the inner shell
  exec ip netns exec "$1" unshare --uts sh -c 'hostname "$0" && exec sh -c "$1"' "$1" "$2"
}

if [[ $1 == kvshost[1-3] ]]; then
  host=$1
  shift
  enter "$host" "$*"
fi

hosts=$(mktemp)
down() {
  for n in 1 2 3; do
    ip netns pids kvshost$n | xargs -r kill -KILL || true
    ip link del kvsport$n || true
    ip netns del kvshost$n || true
  done
  ip link del kvsbridge || true
  rm -f "$hosts"
}
trap down EXIT
ip link add kvsbridge type bridge
ip link set kvsbridge up
for n in 1 2 3; do
  ip netns add kvshost$n
  ip link add kvsport$n type veth peer name eth0 netns kvshost$n
  ip link set kvsport$n master kvsbridge up
  ip -n kvshost$n address add 10.213.77.$n/24 dev eth0
  ip -n kvshost$n link set eth0 up
  ip -n kvshost$n link set lo up
  echo "kvshost$n slots=1" >>"$hosts"
done

OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=$(realpath "$0") OMPI_MCA_orte_default_hostfile=$hosts
OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_btl_tcp_if_include=eth0
export OMPI_MCA_plm OMPI_MCA_plm_rsh_agent OMPI_MCA_orte_default_hostfile
export OMPI_MCA_oob_tcp_if_include OMPI_MCA_btl_tcp_if_include
(enter kvshost1 "$(printf '%q ' "$@")")
