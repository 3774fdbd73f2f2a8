import { expect } from 'chai';
import { newFleetKey, signatureCheck } from '../../src/fleet/link/fleet-keys.ts';
import {
  identityCheck,
  identitySigner,
  newSecretHalf,
  type LinkSecret,
} from '../../src/fleet/link/identity.ts';
import { CALLER, REQUEST } from './a-request.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

/** A manager's own key, for a worker of a version before, and the secret of a link. */
const signers = {
  'a manager': (): LinkSecret => {
    const key = newFleetKey();
    return { ...key, isSigned: signatureCheck(key.publicKey) ?? (() => false) };
  },
  'the secret of a link': (): LinkSecret =>
    newSecretHalf().agree(newSecretHalf().publicKey, 'transcript') ?? fail(),
};

for (const [name, newSigner] of Object.entries(signers))
  describe(`an identity signed by ${name}`, () => {
    const signer = newSigner();
    const setUp = ({ clusterId = 'w1', linkId = 'l1', signedBy = signer } = {}) => {
      const manager = new TestClock();
      const worker = new TestClock(manager.now() - 3_600_000);
      const off = { count: 0 };
      return {
        off,
        manager,
        worker,
        sign: identitySigner(signedBy, { clusterId, linkId, clock: manager }),
        check: identityCheck(signer.isSigned, {
          ...{ clusterId: 'w1', linkId: 'l1', clock: worker },
          isOff: () => void (off.count += 1),
        }),
      };
    };

    it('identifies the caller, even with clocks an hour apart', () => {
      const { sign, check } = setUp();
      const caller = { ...CALLER, gated: true, makers: ['eve'] } as const;
      expect(check(sign(caller, REQUEST), REQUEST)).to.deep.equal(caller);
    });

    it('is valid once', () => {
      const { sign, check } = setUp();
      const identity = sign(CALLER, REQUEST);
      expect(check(identity, REQUEST)).not.to.equal(undefined);
      expect(check(identity, REQUEST)).to.equal(undefined);
    });

    it('is valid for its own request only', () => {
      const { sign, check } = setUp();
      for (const other of [
        { ...REQUEST, method: 'DELETE' },
        { ...REQUEST, target: '/sandboxes?all=true' },
        { ...REQUEST, idempotencyKey: 'k' },
      ])
        expect(check(sign(CALLER, REQUEST), other)).to.equal(undefined);
    });

    it('is valid for some seconds', () => {
      const { sign, check, worker } = setUp();
      const identity = sign(CALLER, REQUEST);
      worker.advance(10_100);
      expect(check(identity, REQUEST)).to.have.property('code', 'UNAVAILABLE');
    });

    it('reports no clock fault if single ones arrive late, or many waited together', () => {
      const { sign, check, manager, worker, off } = setUp();
      const pass = (milliseconds: number): void => {
        manager.advance(milliseconds);
        worker.advance(milliseconds);
      };
      for (let round = 0; round < 5; round += 1) {
        const slow = sign(CALLER, REQUEST);
        pass(12_000);
        expect(check(slow, REQUEST)).to.have.property('code', 'UNAVAILABLE');
        expect(check(sign(CALLER, REQUEST), REQUEST)).to.deep.equal(CALLER);
      }
      const waiting: string[] = [];
      for (let second = 0; second < 5; second += 1) {
        waiting.push(sign(CALLER, REQUEST), sign(CALLER, REQUEST), sign(CALLER, REQUEST));
        pass(1_000);
      }
      pass(11_000);
      for (const each of waiting)
        expect(check(each, REQUEST)).to.have.property('code', 'UNAVAILABLE');
      expect(off.count).to.equal(0);
    });

    it('reports a stopped clock, but not from messages that anybody can send', () => {
      for (const [end, needed] of [
        ['manager', 3],
        ['worker', 1],
      ] as const) {
        const given = setUp();
        const { sign, check, manager, worker, off } = given;
        const used = sign(CALLER, REQUEST);
        check(used, REQUEST);
        given[end === 'manager' ? 'worker' : 'manager'].advance(10_100);
        const forged = setUp({ signedBy: newSigner() }).sign(CALLER, REQUEST);
        for (const identity of [used, forged, 'x']) check(identity, REQUEST);
        for (let come = 0; come < needed; come += 1) {
          expect(off.count, end).to.equal(0);
          expect(check(sign(CALLER, REQUEST), REQUEST), end).to.have.property(
            'code',
            'UNAVAILABLE',
          );
          manager.advance(1_000);
          worker.advance(1_000);
        }
        expect(off.count, end).to.equal(1);
      }
    });

    it('is valid on a link that lasts for weeks, with clocks of different speeds', () => {
      for (const driftMs of [-720, 720]) {
        const { sign, check, manager, worker } = setUp();
        for (let hour = 0; hour < 24 * 14; hour += 1) {
          manager.advance(3_600_000);
          worker.advance(3_600_000 + driftMs);
          expect(check(sign(CALLER, REQUEST), REQUEST), `hour ${hour}`).not.to.equal(undefined);
        }
        const old = sign(CALLER, REQUEST);
        worker.advance(15_000);
        expect(check(old, REQUEST)).to.have.property('code', 'UNAVAILABLE');
      }
    });

    it('is invalid on another cluster, on another link, or with another signature', () => {
      for (const given of [{ clusterId: 'w2' }, { linkId: 'l0' }, { signedBy: newSigner() }]) {
        const { sign, check } = setUp(given);
        expect(check(sign(CALLER, REQUEST), REQUEST)).to.equal(undefined);
      }
    });

    it('is invalid after a change of any byte, or if malformed', () => {
      const { sign, check } = setUp();
      const [signed = '', signature = ''] = sign(CALLER, REQUEST).split('.');
      const claims = JSON.parse(Buffer.from(signed, 'base64url').toString()) as object;
      const admin = Buffer.from(
        JSON.stringify({ ...claims, caller: { ...CALLER, role: 'admin' } }),
      ).toString('base64url');
      for (const text of [
        '',
        '.',
        'x'.repeat(10_000),
        `${admin}.${signature}`,
        `${signed}.`,
        signed,
      ])
        expect(check(text, REQUEST)).to.equal(undefined);
    });
  });

const fail = (): never => {
  throw new Error('there is no secret');
};
