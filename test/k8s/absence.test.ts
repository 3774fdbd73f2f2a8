import { expect } from 'chai';
import { ApiRefused, isAbsent, notFound, refusedBy } from '../../src/k8s/api/api-errors.ts';
import { presenceOf, unjoinable } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aClientOf, aFakeApiServer, json } from './a-fake-api-server.ts';
import { aDriver, anInstance } from './a-driver.ts';
import { MemoryApi } from './a-memory-api.ts';

const said = (part: object): string =>
  JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    reason: 'NotFound',
    code: 404,
    message: 'not found',
    ...part,
  });
const POD_GONE = said({
  message: 'pods "sb-a" not found',
  details: { name: 'sb-a', kind: 'pods' },
});

/** Answers of 404 that say nothing of the object that was asked for. */
const FOREIGN: readonly (readonly [string, string])[] = [
  ["a proxy's page", '<html>404 Not Found</html>'],
  ["a proxy's JSON", '{"error":"no healthy upstream","code":404}'],
  ['a path that the API server does not know', '404 page not found'],
  [
    'a kind that the API server lacks',
    said({ message: 'the server could not find the requested resource', details: {} }),
  ],
  ['a Status of another reason', said({ reason: 'Gone', details: { name: 'sb-a', kind: 'pods' } })],
];

describe('a 404 response', () => {
  it('means absence if the API server names the missing object', () => {
    expect(isAbsent(refusedBy(404, POD_GONE, undefined))).to.equal(true);
    expect(isAbsent(refusedBy(404, POD_GONE, undefined), 'pods')).to.equal(true);
    expect(
      isAbsent(refusedBy(404, said({ details: { name: 'n1', kind: 'nodes' } }), undefined), 'pods'),
      'the node of a Pod',
    ).to.equal(false);
  });

  for (const [what, body] of FOREIGN) {
    it(`does not mean absence if it is ${what}`, async () => {
      const error = refusedBy(404, body, undefined);
      expect(isAbsent(error)).to.equal(false);
      expect(() => notFound(error)).to.throw(ApiRefused);
      expect(unjoinable(error)).to.have.property('name', 'NotJoinable');

      const server = await aFakeApiServer((_request, response) => {
        json(response, {}, 404);
      });
      const api = aClientOf(server.port);
      expect(
        await rejection(
          presenceOf(api.lane('claims'), {
            namespace: 'a',
            name: 'sb-a',
            uid: 'u',
            container: 'main',
          }),
        ),
      ).to.be.instanceOf(ApiRefused);
      await api.close();
      await server.close();
    });
  }

  it('from a proxy does not end a running sandbox', async () => {
    const api = new MemoryApi();
    const { driver, last } = await aDriver(api);
    const { id, namespace } = await anInstance(api, driver);
    const { get } = api.client;
    api.client.get = () => Promise.reject(refusedBy(404, '<html>404 Not Found</html>', undefined));
    expect(await rejection(driver.confirm(id, namespace))).to.be.instanceOf(ApiRefused);
    api.client.get = get;
    expect((await driver.confirm(id, namespace)).record?.claim).to.not.equal(undefined);
    expect(last(id)?.vitals.kind).to.equal('available');
    await driver.stop();
  });
});
