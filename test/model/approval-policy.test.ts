import { expect } from 'chai';
import { fileURLToPath } from 'node:url';
import { ConfigFaults, loadConfig } from '../../src/daemon/config/config.ts';
import { HELD_OPERATIONS } from '../../src/model/approvals/held-operations.ts';
import { routesOf } from '../../src/http/server/app.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { rulesOf } from '../http/an-approving-server.ts';
import {
  parseRule,
  ruleFor,
  strictestOf,
  type PolicySubject,
} from '../../src/model/approvals/policy.ts';

const fileOf = (name: string): string =>
  fileURLToPath(new URL(`../../config/${name}`, import.meta.url));

const subject = (part: Partial<PolicySubject> = {}): PolicySubject => ({
  operation: 'deletePool',
  method: 'DELETE',
  path: '/sandboxpools/web',
  namespace: 'default',
  role: 'user',
  team: 'default',
  gated: false,
  ...part,
});

const holds = (text: string, part: Partial<PolicySubject> = {}): boolean => {
  const rule = parseRule(text);
  if (typeof rule === 'string') throw new Error(rule);
  return ruleFor([rule], subject(part)) !== undefined;
};

describe('the approval policy', () => {
  it('applies a rule if all its conditions hold', () => {
    expect(holds('require')).to.equal(true);
    expect(
      holds('require method=POST|DELETE operation=deletePool role=user team=default'),
    ).to.equal(true);
    for (const other of [
      'require method=POST',
      'require operation=createPool',
      'require role=admin',
      'require team=red',
      'require namespace=red',
      'require key=gated',
    ])
      expect(holds(other), other).to.equal(false);
    expect(holds('require key=gated', { gated: true })).to.equal(true);
    expect(holds('require key=open', { gated: true })).to.equal(false);
  });

  it('accepts wildcards as path segments', () => {
    expect(holds('require path=/sandboxpools/*')).to.equal(true);
    expect(holds('require path=/**')).to.equal(true);
    expect(holds('require path=/sandboxpools/**')).to.equal(true);
    expect(holds('require path=/sandboxpools/**', { path: '/sandboxpools' })).to.equal(true);
    expect(holds('require path=/sandboxpools')).to.equal(false);
    expect(holds('require path=/sandboxpools/*/events')).to.equal(false);
    expect(holds('require path=/sandboxpools/we')).to.equal(false);
  });

  it('compares paths in the form of requests, however they are written', () => {
    const path = '/sandboxes/s/processes/a%3Ab%2F%C3%A9';
    for (const written of ['a:b%2Fé', 'a%3ab%2fé', '%61:b%2F%C3%A9'])
      expect(
        holds(`deny path=/sandboxes/s/processes/${written}`, { path, operation: 'getProcess' }),
        written,
      ).to.equal(true);
    expect(holds('deny method=POST|PUT|PATCH|DELETE path=/sandboxpools/**')).to.equal(true);
  });

  it('includes every operation that a key can request', () => {
    const rows = routesOf(anEngine()).filter(
      ({ access, rules }) => access !== 'open' && !rules?.as,
    );
    expect(HELD_OPERATIONS).to.deep.equal({
      // of the gateway, which has no row
      openEndpoint: 'GET /sandboxes/{sandboxId}/endpoints/{endpointName}',
      ...Object.fromEntries(
        rows.map(({ operationId, method, path }) => [operationId, `${method} ${path}`]),
      ),
    });
  });

  describe('on fields of the body', () => {
    const on = (condition: string, value: unknown, verdict = 'deny'): boolean =>
      holds(`${verdict} operation=createPool ${condition}`, {
        ...{ operation: 'createPool', method: 'POST', path: '/sandboxpools' },
        body: { value },
      });

    it('compares numbers, quantities, durations and words', () => {
      expect(on('body.replicas>10', { replicas: 11 })).to.equal(true);
      expect(on('body.replicas>10', { replicas: 10 })).to.equal(false);
      expect(on('body.replicas>=10 body.replicas<=10', { replicas: 10 })).to.equal(true);
      expect(on('body.overrides.cpu>1', { overrides: { cpu: '1500m' } })).to.equal(true);
      expect(on('body.overrides.memory<4Gi', { overrides: { memory: '512Mi' } })).to.equal(true);
      expect(on('body.idleTimeout>1h', { idleTimeout: '90m' })).to.equal(true);
      expect(on('body.idleTimeout>1h', { idleTimeout: '30m' })).to.equal(false);
      for (const never of ['0', 0, null])
        expect(on('body.idleTimeout>1h', { idleTimeout: never }), 'never').to.equal(true);
      expect(on('body.poolName=a|b', { poolName: 'b' })).to.equal(true);
      expect(on('body.poolName=a', { poolName: 'local::a' })).to.equal(true);
      expect(on('body.poolName!=a', { poolName: 'local::a' }), 'of another cluster').to.equal(true);
    });

    it('matches no missing field, except by !=', () => {
      for (const value of [undefined, {}, { gated: null }, [], 'text']) {
        expect(on('body.gated=true', value)).to.equal(false);
        expect(on('body.gated>1', value)).to.equal(false);
        expect(on('body.gated!=true', value)).to.equal(true);
      }
      expect(on('body.constructor!=x', { a: 1 })).to.equal(true);
    });

    it('decides for the stricter verdict if a condition is undecidable', () => {
      const [strange, mixed] = [{ replicas: ['many'] }, { members: [{ n: 1 }, { n: 20 }] }];
      for (const [verdict, expected] of [
        ['deny', true],
        ['require', true],
        ['allow', false],
      ] as const) {
        expect(on('body.replicas>10', strange, verdict), verdict).to.equal(expected);
        expect(on('body.members.n=20', mixed, verdict), verdict).to.equal(expected);
        expect(on('body.members.n<10', mixed, verdict), verdict).to.equal(expected);
        expect(
          holds(`${verdict} operation=startProcess body.command=ls`, {
            ...{ operation: 'startProcess', method: 'POST', path: '/sandboxes/s/processes' },
          }),
          'of another protocol',
        ).to.equal(expected);
      }
      expect(on('body.poolName=a', { poolName: 'w1::a' }, 'allow')).to.equal(false);
    });

    it("can require that a team's keys are gated", () => {
      const rules = rulesOf(
        'deny team=agents key=open',
        'deny operation=createApiKeyForTenant body.team=agents body.gated!=true',
      );
      const made = (value: unknown): string | undefined =>
        ruleFor(
          rules,
          subject({ operation: 'createApiKeyForTenant', method: 'POST', body: { value } }),
        )?.verdict;
      expect(made({ team: 'agents' })).to.equal('deny');
      expect(made({ team: 'agents', gated: true })).to.equal(undefined);
      expect(made({ team: 'people' })).to.equal(undefined);
      expect(ruleFor(rules, subject({ team: 'agents' }))?.verdict).to.equal('deny');
      expect(ruleFor(rules, subject({ team: 'agents', gated: true }))).to.equal(undefined);
    });
  });

  it('uses the strictest verdict for a request with several operations', () => {
    const strictest = (...texts: readonly string[]) =>
      strictestOf([undefined, ...rulesOf(...texts)]);
    expect(strictest('allow', 'require', 'deny', 'allow')?.verdict).to.equal('deny');
    expect(strictest('require once', 'require')).to.include({ verdict: 'require', onceOnly: true });
    expect(strictest('require', 'require once')).to.include({ verdict: 'require', onceOnly: true });
    expect(strictest()).to.equal(undefined);
  });

  it('is refused with all faults named', () => {
    const rules = [
      'hold method=GET',
      'require verb=GET',
      'require method=get',
      'require path=sandboxpools',
      'require path=/v1/sandboxpools',
      'require role=root',
      'require role=user role=admin',
      'allow once',
      'require operation=',
      'deny operation=deletePoool',
      'deny operation=decideApproval',
      'deny operation=deleteApiKeyByFullName',
      'deny path=/sandboxpool/**',
      'deny path=/sandboxpools/a%2Ab',
      'deny path=/sandboxpools/%FF',
      'deny method=POST operation=deletePool',
      'deny body.replicas',
      'deny body.replicas>many',
      'deny body.replicas>1|2',
      'deny operation=deletePool body.replicas>1',
    ];
    let faults: ConfigFaults | undefined;
    try {
      loadConfig({ env: { HOME: '/', SANDPOOL_APPROVALS_RULES: rules.join(',') } });
    } catch (error) {
      if (error instanceof ConfigFaults) faults = error;
    }

    expect(faults?.faults.map(({ setting }) => setting)).to.deep.equal(
      rules.map(() => 'approvals.rules'),
    );
    for (const [at, rule] of rules.entries())
      expect(faults?.faults[at]?.problem).to.include(rule.split(' ')[1]?.split('=')[0] ?? rule);
  });

  it("is empty as shipped, and the sample gates admins, gated keys, and an admin's POST /api-keys", () => {
    expect(loadConfig({ env: { HOME: '/' } }).config.approvals.rules).to.deep.equal([]);
    const { rules } = loadConfig({
      env: { HOME: '/' },
      argvOptions: { config: fileOf('approvals.yaml') },
    }).config.approvals;
    const verdictOf = (part: Partial<PolicySubject>): string =>
      ruleFor(rules, subject(part))?.verdict ?? 'none';

    expect(verdictOf({ role: 'admin', method: 'POST', operation: 'createApiKey' })).to.equal(
      'require',
    );
    expect(verdictOf({ role: 'admin', method: 'GET', operation: 'listPools' })).to.equal('none');
    expect(verdictOf({ gated: true })).to.equal('require');
    for (const [operation, asked] of Object.entries(HELD_OPERATIONS)) {
      const [method = '', path = ''] = asked.split(' ');
      if (method === 'GET') continue;
      const verdict = path.startsWith('/sandboxes') ? 'allow' : 'require';
      expect(verdictOf({ gated: true, operation, method, path }), operation).to.equal(verdict);
    }
    expect(verdictOf({})).to.equal('none');
  });
});
