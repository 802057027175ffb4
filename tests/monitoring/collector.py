"""A collector of OpenTelemetry by its own messages (opentelemetry-proto) and gRPC: prints each request that it gets as a line of JSON.

Usage: collector.py PORT KEY CERTIFICATE      listens on 127.0.0.1 by TLS until it is killed
"""

import json
import pathlib
import sys
from concurrent import futures

import grpc
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    def Export(self, request, context):
        print(json.dumps(MessageToDict(request)), flush=True)
        return trace_service_pb2.ExportTraceServiceResponse()


def main(port, key, certificate):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Collector(), server)
    pair = [(pathlib.Path(key).read_bytes(), pathlib.Path(certificate).read_bytes())]
    server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials(pair))
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
