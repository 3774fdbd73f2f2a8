import { endpointSocketSuite, hostileEndpointSuite } from '../contracts/hostile-endpoint.ts';
import { CONNECTIONS } from './gateway-support.ts';

for (const [connection, dial] of Object.entries(CONNECTIONS)) {
  hostileEndpointSuite(connection, () => ({ dial }));
  endpointSocketSuite(connection, () => ({ dial }));
}
