import { expect } from 'chai';
import { cleaned } from '../../src/k8s/sandboxes/cleaned-message.ts';

const ID = '0a1b'.repeat(16);

/** What is said, and what a tenant reads of it. */
const SAID: readonly (readonly [who: string, said: string, read: string])[] = [
  [
    'a scheduler',
    '0/50 nodes are available: 50 Insufficient cpu. no new claims to deallocate, preemption: 0/50 nodes are available: 50 No preemption victims found for incoming pod.',
    '0/50 nodes are available: 50 Insufficient cpu.',
  ],
  [
    'a scheduler of taints',
    "0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 2 node(s) didn't match Pod's node affinity/selector.",
    "0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 2 node(s) didn't match Pod's node affinity/selector.",
  ],
  [
    'a runtime that pulls',
    'Back-off pulling image "registry.invalid/app:1.2.3.4": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "registry.invalid/app:1.2.3.4": registry.invalid/app:1.2.3.4: not found',
    'Back-off pulling image "registry.invalid/app:1.2.3.4": ErrImagePull: failed to pull and unpack image "registry.invalid/app:1.2.3.4": registry.invalid/app:1.2.3.4: not found',
  ],
  [
    'a runtime without a registry',
    'failed to do request: Head "https://registry.invalid/v2/app/manifests/1": dial tcp: lookup registry.invalid on 10.96.0.10:53: no such host',
    'failed to do request: Head "https://registry.invalid/v2/app/manifests/1": dial: lookup registry.invalid: no such host',
  ],
  [
    'a registry that refuses',
    'failed to do request: Head "https://registry.example/v2/app/manifests/1": dial tcp 192.0.2.7:443: connect: connection refused',
    'failed to do request: Head "https://registry.example/v2/app/manifests/1": dial: connect: connection refused',
  ],
  [
    'a registry by IPv6',
    'Head "https://registry.example/v2/": dial tcp [2001:db8::7]:443: connect: no route to host',
    'Head "https://registry.example/v2/": dial: connect: no route to host',
  ],
  [
    "a registry's login",
    'failed to fetch oauth token: Post "https://auth.example/token?account=x": unexpected status: 401 Unauthorized',
    'failed to fetch oauth token: Post: unexpected status: 401 Unauthorized',
  ],
  [
    'an image by digest',
    `failed to pull "app@sha256:${ID}": not found`,
    `failed to pull "app@sha256:${ID}": not found`,
  ],
  [
    'an API server that does not reach a kubelet',
    'error dialing backend: dial tcp 10.0.3.4:10250: connect: connection refused',
    'its node does not answer',
  ],
  [
    'an API server that does not find a kubelet',
    'error dialing backend: dial tcp: lookup worker-7 on 10.0.0.2:53: no such host',
    'its node does not answer',
  ],
  [
    'an API server that reads logs',
    'Get "https://worker-7:10250/containerLogs/red/sb-1/main?timestamps=true": dial tcp: lookup worker-7: no such host',
    'its node does not answer',
  ],
  [
    'a tunnel to nodes',
    'proxy error from 127.0.0.1:6443 while dialing worker-7:10250, code 502: 502 Bad Gateway',
    'its node does not answer',
  ],
  [
    'a certificate',
    'tls: failed to verify certificate: x509: certificate is valid for worker-7, 10.0.3.4, not 10.0.3.5',
    'tls: failed to verify certificate: x509: a certificate does not match',
  ],
  [
    'a kubelet without a runtime',
    'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"',
    'connection error: desc = "transport: Error while dialing: dial: connect: connection refused"',
  ],
  [
    'a kubelet that names its runtime',
    'unable to connect to unix:///var/run/crio/crio.sock, giving up',
    'unable to connect to a path of its node, giving up',
  ],
  [
    'a runtime that forwards',
    `error forwarding port 8000 to pod ${ID}, uid : failed to execute portforward in network namespace "/var/run/netns/cni-1b2c": failed to connect to localhost:8000 inside namespace "${ID}", IPv4: dial tcp4 127.0.0.1:8000: connect: connection refused IPv6 dial tcp6: address localhost: no suitable address found`,
    'error forwarding port 8000 to pod, uid : failed to execute portforward in network namespace "a path of its node": failed to connect to localhost:8000 inside namespace, IPv4: dial tcp4 127.0.0.1:8000: connect: connection refused IPv6 dial: address localhost: no suitable address found',
  ],
  [
    'a runtime that runs nothing',
    `rpc error: code = Unknown desc = failed to exec in container: failed to start exec "${ID}": OCI runtime exec failed: exec failed: unable to start container process: exec: "/opt/app/nothing": stat /opt/app/nothing: no such file or directory: unknown`,
    'failed to exec in container: failed to start exec: OCI runtime exec failed: exec failed: unable to start container process: exec: "/opt/app/nothing": stat /opt/app/nothing: no such file or directory: unknown',
  ],
  [
    'a runtime that mounts',
    'failed to mount /var/lib/kubelet/pods/1b2c/volumes/x: permission denied',
    'failed to mount a path of its node: permission denied',
  ],
  [
    'a network plugin',
    'plugin type="bridge" failed (add): failed to set bridge addr: "cni0" already has an IP address different from 10.244.1.1/24',
    'plugin type="bridge" failed (add): failed to set bridge addr: "cni0" already has an IP address different from an address/24',
  ],
  ["a node's end", 'node "worker-7" not found', 'its node not found'],
  [
    'a preemption',
    'Preempted by pod 3e7f on node worker-7.zone.example to make room',
    'Preempted by pod 3e7f on its node to make room',
  ],
  [
    'an eviction',
    'The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi.',
    'The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi.',
  ],
  [
    'an API server that forbids',
    'pods "sb-1" is forbidden: User "system:serviceaccount:sandpool:sandpool" cannot create resource "pods" in API group "" in the namespace "red"',
    'pods "sb-1" is forbidden: the daemon cannot create resource "pods" in API group "" in the namespace "red"',
  ],
  [
    'a quota',
    'pods "sb-1" is forbidden: exceeded quota: small, requested: cpu=1, used: cpu=4, limited: cpu=4',
    'pods "sb-1" is forbidden: exceeded quota: small, requested: cpu=1, used: cpu=4, limited: cpu=4',
  ],
  [
    'a webhook that is down',
    'Internal error occurred: failed calling webhook "hook.example": failed to call webhook: Post "https://hook.system.svc:443/validate?timeout=10s": dial tcp 10.96.1.2:443: connect: connection refused',
    'Internal error occurred: failed calling webhook "hook.example": failed to call webhook: Post: dial: connect: connection refused',
  ],
  [
    'a cut connection',
    'read tcp 10.0.0.1:40210->10.0.3.4:10250: read: connection reset by peer',
    'read: read: connection reset by peer',
  ],
  ['Node.js', 'connect ECONNREFUSED 10.0.0.1:6443', 'connect ECONNREFUSED an address'],
  ['Node.js with IPv6', 'connect ECONNREFUSED fd00::1:2', 'connect ECONNREFUSED an address'],
  ['a clock', 'since 12:30:45 on 2026-01-31T12:30:45Z', 'since 12:30:45 on 2026-01-31T12:30:45Z'],
  [
    'a server on all addresses',
    'it listens on 0.0.0.0 and ::, not on ::1',
    'it listens on 0.0.0.0 and ::, not on ::1',
  ],
];

describe("a cluster's message about a sandbox", () => {
  for (const [who, said, read] of SAID)
    it(`is cleaned if it comes from ${who}`, () => {
      expect(cleaned(said)).to.equal(read);
    });

  it('does not name the node', () => {
    expect(
      cleaned('Pod was rejected by worker: worker has no room, nor has network', 'worker'),
    ).to.equal('Pod was rejected by its node: its node has no room, nor has network');
    expect(cleaned('a.b is gone; a.b.c, xa.b and acb are not', 'a.b')).to.equal(
      'its node is gone; a.b.c, xa.b and acb are not',
    );
  });

  it('is truncated if it is endless', () => {
    for (const part of ['1.', ':', '/a', 'dial tcp ', 'a/b:', '0a'])
      expect(cleaned(part.repeat(100_000)).length).to.be.at.most(8_192);
  });
});
