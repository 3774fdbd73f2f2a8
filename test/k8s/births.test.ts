import { expect } from 'chai';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { ApiUnreachable, NotSent } from '../../src/k8s/api-errors.ts';
import { Births } from '../../src/k8s/births.ts';
import { InstanceMirror } from '../../src/k8s/instance-mirror.ts';
import { anOrder } from '../support/instance-orders.ts';
import { rejection } from '../support/rejection.ts';

describe('births of Pods', () => {
  for (const failure of [new NotSent('no free connection'), new ApiUnreachable('cut')]) {
    it(`are repeated, and are no failed starts, where the API server can't be reached: ${failure.name}`, async () => {
      const births = new Births({
        api: { create: () => Promise.reject(failure), get: () => Promise.reject(failure) },
        calm: async () => undefined,
        mirror: new InstanceMirror({ report: () => undefined, missesPod: () => undefined, nodeTrouble: () => undefined }),
        pods: { runAsUser: 65_532, terminationGraceSeconds: 0 },
      });

      expect(await rejection(births.bear(anOrder(), () => undefined))).to.be.instanceOf(OutcomeUnknown);
    });
  }
});
