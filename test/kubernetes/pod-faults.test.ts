import { expect } from 'chai';
import { v7 } from 'uuid';
import { InstanceGone, NoPlace, RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import type { InstanceFact } from '../../src/model/sandbox.ts';
import { PodDriver } from '../support/cluster/a-pod-driver.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { aClaim, permitted } from '../support/builders/instance-orders.ts';
import { rejection } from '../support/harness/rejection.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { asMergePatch } from '../../local-cluster/control-plane/cluster.ts';

const KEPT = { metadata: { finalizers: ['test.sandpool.dev/keeps'] } };
const LET_GO = { metadata: { finalizers: null } };

describe('a faulty Pod', function () {
  const controlPlane = onTheControlPlane();
  let pods: PodDriver;

  before(async () => {
    pods = await PodDriver.alone(controlPlane());
  });
  after(() => pods.close());

  const kubectl = (...args: readonly string[]): Promise<string> =>
    controlPlane().kubectl(...args, '-n', pods.namespace);
  const patch = (kind: string, id: string, change: object): Promise<void> =>
    controlPlane().patch([kind, podNameOf(id), '-n', pods.namespace], change);
  const last = (id: string, log = pods.log): InstanceFact | undefined => log.of(id).at(-1);
  const shows = (id: string, isSo: (fact: InstanceFact) => boolean, what: string): Promise<void> =>
    eventually(() => {
      const fact = last(id);
      return fact !== undefined && isSo(fact);
    }, what);
  const endOf = (id: string) =>
    pods.log.of(id).findLast(({ record }) => record !== undefined)?.record?.end;

  describe('during its start', () => {
    const waits = async (
      image: string,
      reason: string,
      part: Parameters<PodDriver['order']>[1] = {},
    ): Promise<void> => {
      const { id } = await pods.driver.launch(pods.order(image, part), permitted);
      await shows(
        id,
        ({ vitals }) => vitals.kind === 'starting' && (vitals.reason ?? '').includes(reason),
        reason,
      );
      await pods.driver.retire(
        id,
        (await pods.driver.read(id)).record?.revision ?? '',
        pods.namespace,
      );
    };

    it('shows the reason if no node has room', () =>
      waits('busybox', 'Insufficient cpu', { container: { cpuCores: 100_000 } }));

    for (const [image, reason] of [
      ['unpullable', 'ImagePullBackOff: Back-off pulling image'],
      ['unnamable', 'InvalidImageName'],
      ['unpulled', 'ErrImagePull'],
    ] as const) {
      it(`shows the reason if its image fails with ${reason}`, () => waits(image, reason));
    }

    it('shows a failure with its exit code if it ends at once', async () => {
      const { id } = await pods.driver.launch(pods.order('fails'), permitted);
      expect((await pods.log.when(id, 'gone')).vitals).to.deep.include({
        kind: 'gone',
        exitCode: 1,
      });
    });

    it('is refused with the reason of a quota or a limit', async () => {
      const refused = async (policy: object, reason: string): Promise<void> => {
        const namespace = await controlPlane().namespace();
        await controlPlane().apply({ ...policy, metadata: { name: 'policy', namespace } });
        const own = await PodDriver.watching(controlPlane(), namespace);
        await eventually(async () => {
          const launchOrder = own.order();
          const said = await own.driver.launch(launchOrder, permitted).then(
            () => '',
            (error: Error) => error.message,
          );
          return said.includes(reason);
        }, reason);
        await own.close();
      };
      await refused(
        { apiVersion: 'v1', kind: 'ResourceQuota', spec: { hard: { pods: '0' } } },
        'exceeded quota: policy',
      );
      await refused(
        {
          apiVersion: 'v1',
          kind: 'LimitRange',
          spec: { limits: [{ type: 'Container', max: { memory: '16Mi' } }] },
        },
        'maximum memory usage per Container is 16Mi',
      );
    });

    it('is refused, without an unknown outcome, if a webhook is down', async () => {
      const namespace = await controlPlane().namespace();
      const name = `test-${v7()}`;
      await controlPlane().apply({
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name },
        webhooks: [
          {
            name: 'down.test.sandpool.dev',
            admissionReviewVersions: ['v1'],
            sideEffects: 'None',
            timeoutSeconds: 1,
            failurePolicy: 'Fail',
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
            rules: [
              { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
            ],
            clientConfig: { url: 'https://127.0.0.1:1/', caBundle: '' },
          },
        ],
      });
      const own = await PodDriver.watching(controlPlane(), namespace);
      await eventually(async () => {
        const said = await own.driver.launch(own.order(), permitted).then(
          () => '',
          (error: Error) => `${error.name}: ${error.message}`,
        );
        return said.includes('failed calling webhook') && !said.includes('OutcomeUnknown');
      }, 'the webhook is asked');
      await controlPlane().kubectl('delete', 'validatingwebhookconfiguration', name);
      await own.close();
    });

    it('counts as unplaced, not failed, in a namespace that is missing, foreign or being deleted', async () => {
      const missing = pods.order();
      const gone = {
        ...missing,
        record: {
          ...missing.record,
          poolOwner: { ...missing.record.poolOwner, namespace: 'not-there' },
        },
      };
      expect(await rejection(pods.driver.launch(gone, permitted)))
        .to.be.instanceOf(NoPlace)
        .with.property('message')
        .that.contains('not-there');

      const namespace = await controlPlane().namespace();
      const own = await PodDriver.watching(controlPlane(), namespace);
      await controlPlane().apply({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'holds', namespace, finalizers: ['test.sandpool.dev/holds'] },
      });
      await controlPlane().kubectl('delete', 'namespace', namespace, '--wait=false');
      await eventually(async () => {
        const refusal = await own.driver.launch(own.order(), permitted).then(
          () => undefined,
          (error: unknown) => error,
        );
        return refusal instanceof NoPlace && refusal.message.includes('is being deleted');
      }, 'the namespace ends');
      await controlPlane().patch(['configmap', 'holds', '-n', namespace], LET_GO);
      await own.close();
    });

    it('is distinguished from a handmade Pod of the same name', async () => {
      const launchOrder = pods.order();
      await byHand(podNameOf(launchOrder.record.id));
      expect((await rejection(pods.driver.launch(launchOrder, permitted))).message).to.contain(
        'another Pod with its name exists',
      );
    });
  });

  /** Somebody's own Pod, under the name of an instance. */
  const byHand = (name: string): Promise<void> =>
    controlPlane().apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: pods.namespace },
      spec: {
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 1_000,
          seccompProfile: { type: 'RuntimeDefault' },
        },
        containers: [
          {
            name: 'main',
            image: 'busybox',
            securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          },
        ],
      },
    });

  describe('after its claim', () => {
    const ends = async (id: string, end: object): Promise<void> => {
      await pods.log.when(id, 'gone');
      expect(endOf(id)).to.deep.equal(end);
    };

    it('ends with its exit code if its main process dies', async () => {
      const { id } = await pods.claimed(pods.order('crashes'));
      const { vitals } = await pods.log.when(id, 'gone');
      expect(vitals).to.deep.equal({
        kind: 'gone',
        exitCode: 137,
        outOfMemory: true,
        reason: 'OOMKilled: its main process ended with exit code 137',
      });
      expect(endOf(id)).to.equal(undefined);
    });

    it('counts as deleted if somebody deletes it by hand', async () => {
      const { id } = await pods.claimed();
      await kubectl('delete', 'pod', podNameOf(id));
      await ends(id, { reason: 'deleted', exitCode: null });
    });

    it('counts as killed by an eviction, which it names', async () => {
      const { id } = await pods.claimed();
      await kubectl('delete', 'pdb', '--all'); // it would be refused
      const eviction = JSON.stringify({
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name: podNameOf(id), namespace: pods.namespace },
      });
      const path = `/api/v1/namespaces/${pods.namespace}/pods/${podNameOf(id)}/eviction`;
      expect(
        (await controlPlane().kubectlAs('admin', ['create', '--raw', path, '-f', '-'], eviction))
          .exitCode,
      ).to.equal(0);
      await ends(id, { reason: 'killed', exitCode: null });
      expect(last(id)?.vitals).to.have.property('reason').that.contains('Eviction');
    });

    it('counts as killed if its kubelet ends it', async () => {
      const { id } = await pods.claimed();
      const status = {
        status: {
          phase: 'Failed',
          reason: 'Evicted',
          message: 'The node was low on resource: memory.',
        },
      };
      await kubectl('patch', 'pod', podNameOf(id), '--subresource=status', ...asMergePatch(status));
      await ends(id, { reason: 'killed', exitCode: null });
      expect(last(id)?.vitals).to.have.property(
        'reason',
        'Evicted: The node was low on resource: memory.',
      );
    });

    it('can still be ended if somebody deletes its record', async () => {
      const { id } = await pods.claimed();
      await kubectl('delete', 'sandbox', podNameOf(id));
      await shows(id, ({ record }) => record === undefined, 'it is told');
      await pods.driver.release(id, { reason: 'deleted', exitCode: null });
      await pods.log.when(id, 'gone');
      await pods.driver.forget(id);
      await eventually(
        async () => (await kubectl('get', 'pods', '-o', 'name')).includes(id) === false,
        'its Pod is gone',
      );
    });

    it('is gone if another Pod has its name, which stays untouched', async () => {
      const { id } = await pods.claimed();
      await kubectl('delete', 'pod', podNameOf(id), '--grace-period=0', '--force');
      await byHand(podNameOf(id));
      await pods.log.when(id, 'gone');
      expect(
        await rejection(
          pods.driver.exec(
            id,
            { argv: ['true'], timeoutMs: NEVER_COMES_MS, outputLimit: 1 },
            new AbortController().signal,
          ),
        ),
      ).to.be.instanceOf(InstanceGone);
      await pods.driver.release(id, { reason: 'deleted', exitCode: null });
      await pods.driver.forget(id);
      expect(
        await kubectl('get', 'pod', podNameOf(id), '-o', 'jsonpath={.metadata.deletionTimestamp}'),
      ).to.equal('');
    });

    it('keeps the reason of its end for every replica', async () => {
      const other = await PodDriver.watching(controlPlane(), pods.namespace);
      const { id } = await pods.claimed(pods.order('lingers'));
      await other.log.when(id, 'available');
      await pods.driver.release(id, { reason: 'idle-timeout', exitCode: null });
      await pods.driver.release(id, { reason: 'deleted', exitCode: null });
      await eventually(
        () => other.log.of(id).some(({ record }) => record?.state === 'ending'),
        'it is told',
      );
      expect(other.log.of(id).findLast(({ record }) => record)?.record?.end).to.deep.equal({
        reason: 'idle-timeout',
        exitCode: null,
      });
      await other.close();
    });
  });

  describe('at its end', () => {
    it('is gone even if a foreign finalizer keeps the object', async () => {
      const { id } = await pods.claimed();
      await patch('pod', id, KEPT);
      await pods.driver.release(id, { reason: 'deleted', exitCode: null });
      await pods.log.when(id, 'gone');
      await pods.driver.forget(id);
      await shows(id, ({ record }) => record === undefined, 'it is forgotten');
      await patch('pod', id, LET_GO);
    });

    it('is dead, and never free, even if a foreign finalizer keeps the record', async () => {
      const other = await PodDriver.watching(controlPlane(), pods.namespace);
      const { id } = await pods.launched();
      await other.log.when(id, 'available');
      await patch('sandbox', id, KEPT);
      const { record } = await pods.driver.read(id);
      if (!record) throw new Error('it has a record');
      await pods.driver.retire(id, record.revision, record.poolOwner.namespace);
      await eventually(() => other.log.of(id).at(-1)?.record === undefined, 'all know');
      expect(
        await rejection(other.driver.claim(record, aClaim({ owner: record.poolOwner }))),
      ).to.be.instanceOf(RecordConflict);
      expect((await other.driver.confirm(id, pods.namespace)).record).to.equal(undefined);
      expect(
        (await other.driver.idle(record.poolUid, pods.namespace, 1)).map((fact) => fact.id),
      ).to.not.include(id);
      await patch('sandbox', id, LET_GO);
      await other.close();
    });

    it('keeps foreign fields on its record', async () => {
      const { id } = await pods.launched();
      await kubectl('annotate', 'sandbox', podNameOf(id), 'test.sandpool.dev/note=theirs');
      await kubectl('label', 'sandbox', podNameOf(id), 'theirs=too');
      await patch('sandbox', id, KEPT);
      const { record } = await pods.driver.read(id);
      if (!record) throw new Error('it has a record');
      await pods.driver.claim(record, aClaim({ owner: record.poolOwner }));
      const { metadata } = JSON.parse(
        await kubectl('get', 'sandbox', podNameOf(id), '-o', 'json'),
      ) as {
        readonly metadata: {
          readonly labels: object;
          readonly annotations: object;
          readonly finalizers: object;
        };
      };
      expect(metadata.labels).to.include({ theirs: 'too', 'sandpool.dev/state': 'claimed' });
      expect(metadata.annotations).to.include({ 'test.sandpool.dev/note': 'theirs' });
      expect(metadata.finalizers).to.deep.equal(['test.sandpool.dev/keeps']);
      await patch('sandbox', id, LET_GO);
    });

    it('is killed without grace if it survives its end', async () => {
      const late = await PodDriver.watching(controlPlane(), pods.namespace, {
        graceSeconds: 30,
        aheadMs: 60_000,
      });
      const { id } = await late.claimed(late.order('lingers'));
      await late.driver.release(id, { reason: 'deleted', exitCode: null });
      await eventually(
        () => late.log.of(id).some(({ record }) => record?.state === 'ending'),
        'it ends',
      );
      await late.driver.read(id);
      await late.log.when(id, 'gone');
      await eventually(
        async () => (await kubectl('get', 'pods', '-o', 'name')).includes(id) === false,
        'its Pod is gone',
      );
      await late.close();
    });
  });
});
