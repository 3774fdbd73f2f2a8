import { expect } from 'chai';
import { createSandbox } from '../../src/http/e2b/control/create-sandbox.ts';
import type { ClaimRequest } from '../../src/actors/sandbox/commands/sandbox-operations.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('a template with an image', () => {
  const asked: ClaimRequest[] = [];
  const operations = anEngine();
  const create = (templateID: string, images: readonly string[] = ['registry.test:5000/team']) =>
    createSandbox(
      {
        operations: {
          deleteSandbox: operations.deleteSandbox,
          featureGates: operations.featureGates,
          getTemplate: operations.getTemplate,
          claimSandbox: (_caller, request) => {
            asked.push(request);
            return Promise.reject(new Error('asked'));
          },
        },
        terms: {
          clusterId: 'local',
          templates: new Map([['base', 'default']]),
          waitMs: 10,
          images,
          imageWaitMs: 50,
          openPorts: false,
          withoutPause: 'refuse',
        },
      },
      alice,
      { body: { templateID }, lifetimeSeconds: 9, more: {}, signal: new AbortController().signal },
    );

  it('launches an instance for the request, with its own time limit', async () => {
    for (const template of ['local::default', 'default', 'base', 'local::base'])
      await rejection(
        create(`${template}//registry.test:5000/team/tool:1@sha256:${'a'.repeat(64)}`),
      );

    expect(asked.map(({ poolName }) => poolName)).to.deep.equal([
      'default',
      'default',
      'default',
      'base',
    ]);
    for (const { image, waitMs } of asked)
      expect([image, waitMs]).to.deep.equal([
        { name: `registry.test:5000/team/tool:1@sha256:${'a'.repeat(64)}`, field: 'templateID' },
        50,
      ]);
  });

  it('is refused by its field if its image is not allowed', async () => {
    asked.length = 0;
    for (const [template, images] of [
      ['default//registry.test:5000/team/x'],
      ['default//registry.test:5000/teams/x', ['registry.test:5000/team']],
      ['default//registry.test', ['registry.test:5000/team']],
      ['default//', ['']],
      [`default//registry.test/${'x'.repeat(600)}`, ['registry.test']],
    ] as const)
      expect(await rejection(create(template, images ?? []))).to.deep.include({
        code: 'INVALID_ARGUMENT',
        detail: { field: 'templateID' },
      });
    expect(asked).to.have.length(0);
  });

  it('cannot belong to another cluster', async () => {
    expect(await rejection(create('other::default//registry.test:5000/team/x'))).to.include({
      code: 'CLUSTER_NOT_FOUND',
    });
  });
});
