import { expect } from 'chai';
import type { LinkedCluster } from '../../src/contracts/fleet/cluster-links.ts';
import type { CopyReport } from '../../src/contracts/fleet/global-templates.ts';
import type { TemplateRecord } from '../../src/model/templates/template.ts';
import { templateClusters } from '../../src/fleet/replication/template-clusters.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aDocument } from './a-templated-cluster.ts';

const aTemplate = (part: Partial<TemplateRecord> = {}): TemplateRecord => ({
  ...{ name: 't', version: '3', createdAt: 0, revision: '1', document: aDocument('t') },
  globalId: 'abcdefghijkl',
  ...part,
});
const aClusterOf = (clusterId: string, part: Partial<LinkedCluster> = {}): LinkedCluster => ({
  ...{ clusterId, isConnected: true, lastHeartbeat: 5, links: [], copyRefusedAt: undefined },
  ...part,
});
const LINK = {
  linkId: 'l',
  replica: 'r',
  status: 'Open',
  openedAt: 0,
  latencyMs: 1,
  keysRemade: 0,
} as const;

describe('the state of a global template on clusters', () => {
  const clock = new TestClock();
  const asked: string[] = [];
  const reports: Readonly<Record<string, CopyReport>> = {
    agrees: { state: 'Synced', version: '3', pools: [] },
    behind: { state: 'Synced', version: '2', pools: [] },
    refuses: { state: 'Refused', version: '1', message: 'spec.containers: no', pools: [] },
  };
  const clusters = (
    template: TemplateRecord | undefined,
    list: readonly LinkedCluster[],
  ): ReturnType<ReturnType<typeof templateClusters>> =>
    templateClusters({
      ...{ clock, templates: { get: async () => template } },
      links: {
        list: () => list,
        report: async (clusterId) => {
          asked.push(clusterId);
          return reports[clusterId];
        },
      },
    })('t');

  it('is what they report, or the time of the last contact if they do not answer', async () => {
    const at = clock.now();
    const nothing = { version: undefined, message: undefined };
    expect(
      await clusters(aTemplate(), [
        ...['agrees', 'behind', 'refuses'].map((clusterId) => aClusterOf(clusterId)),
        aClusterOf('silent', { links: [LINK] }),
        aClusterOf('away', { isConnected: false }),
      ]),
    ).to.deep.equal([
      { clusterId: 'agrees', state: 'Synced', version: '3', message: undefined, at },
      { clusterId: 'behind', state: 'Pending', version: '2', message: undefined, at },
      { clusterId: 'refuses', state: 'Refused', version: '1', message: 'spec.containers: no', at },
      { clusterId: 'silent', state: 'Unreachable', ...nothing, at: 5 },
      { clusterId: 'away', state: 'Unreachable', ...nothing, at: 5 },
    ]);
    expect(asked).not.to.include('away');
  });

  it('is empty for a local template, and a refusal for an unknown one', async () => {
    const { globalId: _globalId, ...own } = aTemplate();
    expect(await clusters(own, [aClusterOf('agrees')])).to.deep.equal([]);
    expect(await rejection(clusters(undefined, []))).to.include({
      code: 'SANDBOX_TEMPLATE_NOT_FOUND',
    });
  });
});
