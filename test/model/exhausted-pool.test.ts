import { expect } from 'chai';
import { noIdleInstance } from '../../src/model/pools/exhausted-pool.ts';

const NONE = { idle: 0, running: 0, starting: 1, stopping: 0, retiring: 0, failed: 0 };

describe('the refusal of a claim that no node has room for', () => {
  for (const [nodes, message, hint] of [
    [
      'are tainted',
      '0/1 nodes are available: 1 node(s) had untolerated taint(s).',
      'nodes accept no new Pods',
    ],
    [
      'are cordoned',
      '0/1 nodes are available: 1 node(s) were unschedulable.',
      'nodes accept no new Pods',
    ],
    ['are full', '0/1 nodes are available: 1 Insufficient memory.', 'less cpu and memory'],
    [
      'are cordoned or full',
      '0/2 nodes are available: 1 node(s) were unschedulable, 1 Insufficient cpu.',
      'less cpu and memory',
    ],
    [
      'are not where its volume is',
      '0/1 nodes are available: 1 node(s) had volume node affinity conflict.',
      'no node has enough capacity',
    ],
  ] as const) {
    it(`explains the remedy if all ${nodes}`, () => {
      const { detail } = noIdleInstance({ name: 'p' }, NONE, {
        reason: 'Unschedulable',
        message: `Unschedulable: ${message}`,
      });
      expect(detail).to.include({ problem: `Unschedulable: ${message}` });
      expect((detail as { readonly hint: string }).hint).to.contain(hint);
    });
  }
});

describe('the refusal of a claim from a pool without instances', () => {
  const hintOf = (running: number, env?: string, missing = 0): string =>
    (
      noIdleInstance({ name: 'p', env }, { ...NONE, starting: 0, running, missing }).detail as {
        readonly hint: string;
      }
    ).hint;

  it('names the remedy, the pool, its env and its owner for programs', () => {
    const actionOf = (pool: Parameters<typeof noIdleInstance>[0], starting = 0): unknown =>
      noIdleInstance(pool, { ...NONE, starting }).detail?.['action'];
    expect(actionOf({ name: 'p' })).to.deep.equal({ type: 'enlarge-pool', poolName: 'p' });
    expect(actionOf({ name: 'p', env: 'e', of: 'a/b' })).to.deep.equal({
      type: 'enlarge-pool',
      poolName: 'p',
      env: 'e',
      member: 'p',
      owner: 'a/b',
    });
    expect(actionOf({ name: 'p' }, 1)).to.include({ type: 'retry' });
  });

  it('advises deleting a sandbox only if one is running', () => {
    expect(hintOf(1)).to.equal(
      'delete a sandbox with DELETE /v1/sandboxes/{sandboxId}, or raise replicas with PUT /v1/sandboxpools/p',
    );
    expect(hintOf(0)).to.equal('raise replicas with PUT /v1/sandboxpools/p');
  });

  it('advises waiting, rather than a larger pool, if instances are still starting', () => {
    for (const running of [0, 1])
      expect(hintOf(running, undefined, 2)).to.equal(
        'instances are waiting to start; claim with waitTimeoutSeconds, or try again shortly',
      );
  });

  it('advises waiting first if an env grows the pool', () => {
    expect(hintOf(0, 'e')).to.match(
      /^claim with waitTimeoutSeconds so that an instance is started/,
    );
  });
});
