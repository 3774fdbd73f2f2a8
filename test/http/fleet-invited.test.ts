import { expect } from 'chai';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

const ID = '01234567-89ab-4cde-8f01-23456789abcd';

describe('a manager with an unused join token', () => {
  let servers: FleetOfServers;

  before(async () => {
    servers = await aFleetOfServers(['w1']);
    await servers.fleet.registry.invite('wset');
  });
  after(() => servers.stop());

  for (const path of [
    '/sandboxes',
    '/sandboxpools',
    '/quotas',
    '/admin/statistics/sandboxes',
    '/admin/audit',
    '/debug/actors',
  ])
    it(`reports no missing cluster in GET ${path}`, async () => {
      const { status, headers, json } = await servers.manager.admin.get(path);
      expect([status, headers['warning']]).to.deep.equal([200, undefined]);
      expect(json).not.to.have.property('incomplete');
    });

  for (const path of [
    `/sandboxes/wset.${ID}`,
    '/sandboxpools/wset::shells',
    '/sandboxes?poolName=wset::shells',
    '/quotas?clusterID=wset',
    '/admin/statistics/sandboxes?clusterID=wset',
  ])
    it(`lists no such cluster in GET ${path}`, async () => {
      const { status, json } = await servers.manager.admin.get(path);
      expect([status, json.errorCode]).to.deep.equal([404, 'CLUSTER_NOT_FOUND']);
    });
});
